package redistest

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// OptionalRights are those that the page names and no limit needs.
var OptionalRights = []string{"+info", "+scan"}

// DocumentedRights reads which rights a user of Redis needs: those of the line that people copy, without the optional
// ones. The path is that of docs/redis.md.
func DocumentedRights(t testing.TB, path string) []string {
	t.Helper()
	all := Documented(t, path, "\nuser limiter on >password ")
	needed := slices.DeleteFunc(slices.Clone(all), func(right string) bool { return slices.Contains(OptionalRights, right) })
	if len(all) != len(needed)+len(OptionalRights) {
		t.Fatalf("docs/redis.md does not name %v once each in %q", OptionalRights, all)
	}
	return needed
}

// Documented reads the words after a text, up to the end of their line. The path is that of docs/redis.md.
func Documented(t testing.TB, path, after string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	_, words, ok := strings.Cut(string(text), after)
	if !ok {
		t.Fatalf("docs/redis.md has no line %q: %v", after, err)
	}
	words, _, _ = strings.Cut(words, "\n")
	return strings.Fields(words)
}
