package page

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// maxSize bounds what a browser loads, compressed.
const maxSize = 90_000

// TestPageIsSmall: the page with all that it loads is small, and each file has a type.
func TestPageIsSmall(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for name, f := range all {
		if f.contentType == "" {
			t.Errorf("%s has no content type", name)
		}
		if !strings.HasSuffix(name, ".txt") {
			size += min(len(f.compressed), len(f.text))
		}
	}
	t.Logf("the page has %d bytes in %d files", size, len(all))
	if size > maxSize {
		t.Errorf("the page has %d bytes, want at most %d", size, maxSize)
	}
}

// TestFilesLoadNothingFromElsewhere: no file names another host, makes markup of text, or has a style
// or a script within markup, which the policy forbids.
func TestFilesLoadNothingFromElsewhere(t *testing.T) {
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bstyle="|\bon[a-z]+="|<style|https?://`)
	harmless := regexp.MustCompile(`https?://(www\.w3\.org/|github\.com/)`)
	for name, f := range all {
		if strings.HasPrefix(name, "uplot") {
			continue
		}
		if found := bad.FindString(harmless.ReplaceAllString(string(f.text), "")); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// TestServe: files are compressed for browsers that take this, and not sent again while they are the
// same.
func TestServe(t *testing.T) {
	ask := func(name string, fields ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		if !Has(name) {
			t.Fatalf("%q is missing", name)
		}
		if err := Serve(w, r, name); err != nil {
			t.Fatal(err)
		}
		return w
	}
	plain, small := ask(""), ask("", "Accept-Encoding", "gzip, br")
	if plain.Body.Len() <= small.Body.Len() || small.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" {
		t.Errorf("plain %d bytes, compressed %d: %v", plain.Body.Len(), small.Body.Len(), small.Header())
	}
	again := ask("", "If-None-Match", "W/"+plain.Header().Get("ETag"))
	if again.Code != 304 || again.Body.Len() != 0 {
		t.Errorf("the same file again: %d, %d bytes", again.Code, again.Body.Len())
	}
	if got := plain.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none';") || strings.Contains(got, "unsafe") {
		t.Errorf("policy %q", got)
	}
	for _, name := range []string{"index.html", "../page.go", "static", "/"} {
		if Has(name) {
			t.Errorf("there is a file %q", name)
		}
	}
}
