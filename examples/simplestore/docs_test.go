package simplestore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page says how to write a store.
const page = "README.md"

// read returns the text of some files.
func read(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// blocks are the blocks of the page in a language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	for _, match := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1) {
		found = append(found, match[1])
	}
	return found
}

// TestCodeInTheDocs: the Go code that the page shows is in this package.
func TestCodeInTheDocs(t *testing.T) {
	code, shown := read(t, "*.go"), blocks(t, "go")
	if len(shown) < 5 {
		t.Errorf("%s shows %d pieces of code", page, len(shown))
	}
	for _, block := range shown {
		if !strings.Contains(code, block) {
			t.Errorf("%s shows what this package does not have:\n%s", page, block)
		}
	}
}

// TestInterfacesInTheDocs: the page names each optional interface of package store.
func TestInterfacesInTheDocs(t *testing.T) {
	declared := make(map[string]bool)
	for _, match := range regexp.MustCompile(`(?m)^type ([A-Z]\w*) interface {`).FindAllStringSubmatch(read(t, "../../store/*.go"), -1) {
		declared[match[1]] = true
	}
	delete(declared, "Store") // which are not optional
	delete(declared, "Backend")
	for _, row := range regexp.MustCompile("(?m)^\\| (`store\\.[^|]*) \\|").FindAllStringSubmatch(read(t, page), -1) {
		for _, match := range regexp.MustCompile("`(?:store\\.)?(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			name := match[1]
			if !declared[name] && name != "Backend" {
				t.Errorf("%s names store.%s, which is no optional interface", page, name)
			}
			delete(declared, name)
		}
	}
	for name := range declared {
		t.Errorf("%s does not name store.%s", page, name)
	}
}
