package zone

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestNear: a key is near its limit if at least 80 % of it are used.
func TestNear(t *testing.T) {
	for remaining, near := range map[int64]bool{0: true, 3: true, 20: true, 21: false, 100: false} {
		if got := IsNear(&algorithms.Decision{Allowed: true, Quota: 100, Remaining: remaining}); got != near {
			t.Errorf("%d of 100: near %v, want %v", remaining, got, near)
		}
	}
}
