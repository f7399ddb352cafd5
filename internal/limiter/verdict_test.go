package limiter

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestBindingZone: of several zones, the answer describes the one that binds the client most.
func TestBindingZone(t *testing.T) {
	pass := func(remaining, quota int64) algorithms.Decision {
		return algorithms.Decision{Allowed: true, Remaining: remaining, Quota: quota}
	}
	refuse := func(wait time.Duration) algorithms.Decision {
		return algorithms.Decision{RetryAfter: wait, Quota: 10}
	}
	for _, c := range []struct {
		name      string
		decisions []algorithms.Decision
		index     int
		refused   bool
	}{
		{"the smallest share left", []algorithms.Decision{pass(90, 100), pass(1, 2), pass(50, 1000)}, 2, false},
		{"the first of equals", []algorithms.Decision{pass(1, 2), pass(50, 100)}, 0, false},
		{"the one that refuses", []algorithms.Decision{pass(0, 100), refuse(time.Second), pass(0, 1)}, 1, true},
		{"the longest wait", []algorithms.Decision{refuse(time.Second), refuse(time.Minute), pass(0, 1)}, 1, true},
		{"never is longest", []algorithms.Decision{refuse(algorithms.Never), refuse(time.Minute)}, 0, true},
		{"no quota at all", []algorithms.Decision{pass(1, 2), pass(0, 0)}, 1, false},
	} {
		v := &Verdict{Decisions: c.decisions, Enforced: len(c.decisions)}
		if index, refused := v.mostBinding(0, v.Enforced); index != c.index || refused != c.refused {
			t.Errorf("%s: got %d, %v", c.name, index, refused)
		}
	}
}

// TestCostOfAResponse: an upstream may say only what a cost may be.
func TestCostOfAResponse(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1, " 17 ": 17, "1000000000000": 1e12} {
		if got, err := parseCost([]string{text}); got != want || err != nil {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5", "1e3", "0x10", "many", "1000000000001", "99999999999999999999", strings.Repeat("9", 10_000)} {
		if got, err := parseCost([]string{text}); err == nil {
			t.Errorf("%.20q: got %d", text, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("%.20q: the error has %d bytes", text, len(err.Error()))
		}
	}
	if _, err := parseCost([]string{"1", "1"}); err == nil {
		t.Error("two values are taken for one")
	}
}
