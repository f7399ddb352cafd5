// Package page serves the files of the page that shows what a running Caddy limits. They are in the
// binary, and load nothing from elsewhere.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/internal/uplot"
)

//go:embed static
var static embed.FS

// file is a file of the page.
type file struct {
	text, compressed []byte
	contentType, tag string
}

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
}

// The name of the page itself is empty.
const index = "index.html"

// files has the files by name. They are compressed when the first is asked for, because most
// processes serve none.
var files = sync.OnceValues(func() (map[string]*file, error) {
	all := make(map[string]*file)
	add := func(name string, text []byte) error {
		compressed, err := compress(text)
		if err != nil {
			return fmt.Errorf("compressing %s: %w", name, err)
		}
		sum := sha256.Sum256(text)
		all[name] = &file{text, compressed, contentTypes[path.Ext(name)], `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	}
	entries, err := static.ReadDir("static")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := static.ReadFile("static/" + entry.Name())
		if err == nil {
			err = add(entry.Name(), text)
		}
		if err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{"uplot.js": uplot.Script, "uplot.css": uplot.Style, "uplot-license.txt": uplot.License} {
		if err := add(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	all[""] = all[index]
	delete(all, index)
	return all, nil
})

func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// policy keeps the page from running or loading anything but its own files, and from being framed.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// header has the fields of all answers. Caddy's admin endpoint knows where a request for reading comes
// from by its Referer, so the page must send one.
var header = map[string]string{
	"Content-Security-Policy":      policy,
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-cache",
	"Vary":                         "Accept-Encoding",
}

// Has reports whether the page has a file. The name of the page itself is empty.
func Has(name string) bool {
	all, err := files()
	return err == nil && all[name] != nil
}

// Serve answers with a file of the page, which must have it.
func Serve(w http.ResponseWriter, r *http.Request, name string) error {
	all, err := files()
	if err != nil {
		return err
	}
	f := all[name]
	for field, value := range header {
		w.Header().Set(field, value)
	}
	w.Header().Set("ETag", f.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	text := f.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && len(f.compressed) < len(text) {
		text = f.compressed
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, err = w.Write(text)
	return err
}
