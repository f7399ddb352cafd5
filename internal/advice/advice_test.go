package advice_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// TestOf: a text is recognized with any values and with more behind it, and the longer of two pieces of
// advice wins.
func TestOf(t *testing.T) {
	before := len(advice.All())
	short := advice.New("short", "raise events")
	long := advice.New("long", "raise events to %d (at most %s)")
	for text, want := range map[string]*advice.Advice{
		short.With().String():                      short,
		long.With(5, "a\nb").String():              long,
		long.With(5, "6").String() + " (zone api)": long,
		"lower events":                             nil,
		"to raise events":                          nil,
	} {
		if got := advice.Of(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if all := advice.All(); len(all) != before+2 || all[before].Name() != "short" {
		t.Errorf("%v", all)
	}
}
