package docs_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDurationsAreShort: pages, and what tests expect of messages and commands, have 1h and 1m, not 1h0m0s and 1m0s.
func TestDurationsAreShort(t *testing.T) {
	long, files := regexp.MustCompile(`[0-9](m0s|h0m)\b`), 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch kind := filepath.Ext(path); {
		case err != nil:
			return err
		case d.IsDir():
			if strings.HasPrefix(d.Name(), ".") && path != "." {
				return fs.SkipDir
			}
			return nil
		case kind != ".md" && kind != ".txtar" && kind != ".txt":
			return nil
		}
		files++
		for n, line := range strings.Split(read(t, path), "\n") {
			if found := long.FindString(line); found != "" {
				t.Errorf("%s:%d has a duration that ends in %s: use duration.Format", path, n+1, found)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files: %v", files, err)
	}
}
