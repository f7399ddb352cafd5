package late

import (
	"strings"
	"testing"
)

// TestCostOfAResponse: the cost header must have one valid cost.
func TestCostOfAResponse(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, " 17 ": 17, "1000000000000": 1e12} {
		if got, err := parseCost([]string{text}); got != want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1e3", "0x10", "many", "1000000000001", "99999999999999999999", strings.Repeat("9", 10_000)} {
		if got, err := parseCost([]string{text}); err == nil {
			t.Errorf("%.20q: got %d, want an error", text, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.20q: the error has %d bytes", text, len(err.Error()))
		}
	}
	if _, err := parseCost([]string{"1", "1"}); err == nil {
		t.Error("two values: want an error")
	}
}
