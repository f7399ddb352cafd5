package key

import (
	"testing"
)

// TestCleanValuesCostNothing: values in the usual form are not copied.
func TestCleanValuesCostNothing(t *testing.T) {
	for clean, values := range map[string][]string{
		"path": {"/", "/login", "/a/b.c/", "/api/v1/items/17", "/a-b_c~d"},
		"host": {"a.test", "www.example.com", "203.0.113.7", "::1"},
		"uri":  {"/", "/login", "/a/b.c/?x=Y", "/api?q=a%20b"},
	} {
		normalize := map[string]func(string) string{"path": cleanPath, "host": cleanHost, "uri": cleanURI}[clean]
		for _, value := range values {
			if n := testing.AllocsPerRun(10, func() { normalize(value) }); n != 0 || normalize(value) != value {
				t.Errorf("%s %q: %v allocations, becomes %q", clean, value, n, normalize(value))
			}
		}
	}
}
