// Package page serves the files of the page that shows what a running Caddy limits. They are in the
// binary, and load nothing from elsewhere.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/web"
)

//go:embed static
var static embed.FS

const index = "index.html"

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
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
}

// read returns a file. The name of the page itself is empty, and its only one.
func read(name string) ([]byte, error) {
	if name == index {
		return nil, fs.ErrNotExist
	}
	name = "static/" + cmp.Or(name, index)
	text, err := static.ReadFile(name)
	if err != nil {
		return web.Files.ReadFile(name)
	}
	return text, nil
}

// Has reports whether the page has a file. The name of the page itself is empty.
func Has(name string) bool {
	_, err := read(name)
	return err == nil
}

// Serve answers with a file of the page, which must have it.
func Serve(w http.ResponseWriter, r *http.Request, name string) error {
	text, err := read(name)
	if err != nil {
		return err
	}
	for field, value := range header {
		w.Header().Set(field, value)
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(cmp.Or(name, index))])
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(text)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	return nil
}
