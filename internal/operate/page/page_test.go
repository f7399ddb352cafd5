package page

import (
	"io/fs"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/web"
)

// maxSize bounds what a browser loads.
const maxSize = 115_000

// files returns the files of the page by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, from := range []fs.FS{static, web.Files} {
		names, err := fs.Glob(from, "static/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(from, name)
			if err != nil {
				t.Fatal(err)
			}
			all[path.Base(name)] = string(text)
		}
	}
	all[""] = all[index]
	delete(all, index)
	return all
}

// TestPageIsSmall: the page with all that it loads is small, and each file has a type.
func TestPageIsSmall(t *testing.T) {
	size, all := 0, files(t)
	for name, text := range all {
		if !Has(name) || contentTypes[path.Ext(name)] == "" && name != "" {
			t.Errorf("%q is missing, or has no content type", name)
		}
		size += len(text)
	}
	t.Logf("the page has %d bytes in %d files", size, len(all))
	if size > maxSize {
		t.Errorf("the page has %d bytes, want at most %d", size, maxSize)
	}
}

// TestFilesLoadNothingFromElsewhere: no file names another host, makes markup of text, or has a style
// or a script within markup, which the policy forbids.
func TestFilesLoadNothingFromElsewhere(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bstyle="|\bon[a-z]+="|<style|https?://`)
	harmless := regexp.MustCompile(`https?://(www\.w3\.org/|github\.com/)`)
	for name, text := range files(t) {
		if found := bad.FindString(harmless.ReplaceAllString(text, "")); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// TestServe: files are not sent again while they are the same.
func TestServe(t *testing.T) {
	ask := func(name string, fields ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		if err := Serve(w, r, name); err != nil {
			t.Fatal(err)
		}
		return w
	}
	plain := ask("")
	if got := plain.Header().Get("Content-Type"); plain.Code != 200 || plain.Body.Len() == 0 || got != "text/html; charset=utf-8" {
		t.Errorf("%d, %d bytes of %s", plain.Code, plain.Body.Len(), got)
	}
	again := ask("", "If-None-Match", "W/"+plain.Header().Get("ETag"))
	if again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("the same file again: %d, %d bytes", again.Code, again.Body.Len())
	}
	if got := plain.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none';") || strings.Contains(got, "unsafe") {
		t.Errorf("policy %q", got)
	}
	for _, name := range []string{"index.html", "../page.go", "static", "/", "."} {
		if Has(name) {
			t.Errorf("there is a file %q", name)
		}
	}
}
