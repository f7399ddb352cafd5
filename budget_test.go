package caddyratelimit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spare is how many lines a budget may leave. A package that has become smaller keeps what was won.
const spare = 100

// TestBudgets: no package has more lines or kilobytes of code than its budget in the table of layers, and no budget is much larger than
// its package. To raise one is a decision, which the commit explains.
func TestBudgets(t *testing.T) {
	for _, l := range layers {
		lines, bytes := codeOf(t, l.name)
		if kB := (bytes + 999) / 1000; lines > l.lines || kB > l.kB {
			t.Errorf("%s has %d lines and %d kB of code, and its budget is %d and %d", l.name, lines, kB, l.lines, l.kB)
		} else if lines <= l.lines-spare {
			t.Errorf("%s has %d lines of code: lower its budget of %d", l.name, lines, l.lines)
		}
	}
}

// codeOf returns the lines of a package that are neither empty nor comments, and their bytes: Go without tests, Lua, and what browsers get.
func codeOf(t *testing.T, pkg string) (lines, bytes int) {
	t.Helper()
	for _, pattern := range []string{"*.go", "*.lua", "static/*.js", "static/*.css", "static/*.html"} {
		files, err := filepath.Glob(filepath.Join(pkg, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if isCode(filepath.Ext(file), strings.TrimSpace(line)) {
					lines, bytes = lines+1, bytes+len(line)
				}
			}
		}
	}
	return lines, bytes
}

func isCode(kind, line string) bool {
	comment := map[string]string{".go": "//", ".js": "//", ".lua": "--", ".css": "/*", ".html": "<!--"}[kind]
	return line != "" && (!strings.HasPrefix(line, comment) || strings.HasPrefix(line, "--[["))
}
