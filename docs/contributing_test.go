package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPlacesOfChanges: every file and folder that CONTRIBUTING.md names exists, and each kind of change
// has at most five lines.
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
	_, changes, found := strings.Cut(string(text), "## Where a change goes\n")
	if !found {
		t.Fatal("CONTRIBUTING.md has no list of changes")
	}
	changes, _, _ = strings.Cut(changes, "\n## ")
	kinds := 0
	for paragraph := range strings.SplitSeq(strings.TrimSpace(changes), "\n\n") {
		kinds++
		if n := strings.Count(paragraph, "\n") + 1; n > 5 {
			t.Errorf("a change has %d lines: %s", n, paragraph)
		}
	}
	if kinds != 8 {
		t.Errorf("%d kinds of changes, want 8", kinds)
	}
}
