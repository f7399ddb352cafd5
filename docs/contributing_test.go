package docs_test

import (
	"os"
	"regexp"
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
