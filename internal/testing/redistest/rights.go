package redistest

import (
	"os"
	"strings"
	"testing"
)

// DocumentedRights reads which rights a user of Redis needs. The path is that of docs/redis.md.
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
	return strings.Fields(rules)
}
