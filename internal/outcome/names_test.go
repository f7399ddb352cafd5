package outcome_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// TestOneWordForAnOutcome: each name means one thing, and the glossary in the docs has it.
func TestOneWordForAnOutcome(t *testing.T) {
	page, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for o, name := range outcome.Names {
		column := outcome.Outcome(o).Column()
		if column != name && slices.Contains(outcome.Names[:], column) {
			t.Errorf("%s is in the column %s, which is another outcome", name, column)
		}
		if !slices.Contains(outcome.Columns, column) {
			t.Errorf("%s has no column", name)
		}
		if row := fmt.Sprintf("\n| `%s` | `%s` | ", name, column); strings.Count(string(page), row) != 1 {
			t.Errorf("docs/observability.md must have one row %q", row)
		}
		if named, ok := outcome.Named(name); !ok || !named[o] {
			t.Errorf("%s is not found by its name", name)
		}
	}
	for name, want := range map[string]int{"refused": 3, "errors": 3, "limited": 1, "other": 0, "": 0} {
		named, ok := outcome.Named(name)
		n := 0
		for _, is := range named {
			if is {
				n++
			}
		}
		if n != want || ok != (want > 0) {
			t.Errorf("%q names %d outcomes, want %d", name, n, want)
		}
	}
}
