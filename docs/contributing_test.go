package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPlacesOfChanges: every file and folder that CONTRIBUTING.md names exists.
func TestPlacesOfChanges(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([\\w./-]+[./][\\w./-]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("CONTRIBUTING.md names %d files, want at least 20", len(named))
	}
	for _, name := range named {
		if _, err := os.Stat(name[1]); err != nil {
			t.Error(err)
		}
	}
}

// TestNamesOfTests: each test that a page names is there.
func TestNamesOfTests(t *testing.T) {
	found := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walk := func(path string, file fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, test := range declared.FindAllStringSubmatch(read(t, path), -1) {
			found[test[1]] = true
		}
		return nil
	}
	if err := filepath.WalkDir(".", walk); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(docPages(t), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "internal/testing/TRACK-RECORD.md") {
		for _, test := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(read(t, page), -1) {
			named++
			if !found[test] {
				t.Errorf("%s names %s, which is not there", page, test)
			}
		}
	}
	if named < 50 {
		t.Errorf("found only %d names of tests", named)
	}
}
