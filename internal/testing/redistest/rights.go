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
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(string(text), "\nuser limiter on >password ")
	if !ok {
		t.Fatal("docs/redis.md names no rights of a Redis user")
	}
	rules, _, _ = strings.Cut(rules, "\n")
	all := strings.Fields(rules)
	needed := slices.DeleteFunc(slices.Clone(all), func(right string) bool { return slices.Contains(OptionalRights, right) })
	if len(all) != len(needed)+len(OptionalRights) {
		t.Fatalf("docs/redis.md does not name %v once each in %q", OptionalRights, rules)
	}
	return needed
}
