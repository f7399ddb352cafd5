package zone

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLoanIsNotTheLimit: a key is near its limit by what is left of that. A client is told when more than
// what this process may promise can be had.
func TestLoanIsNotTheLimit(t *testing.T) {
	z := &Zone{Spec: Spec{NearLimit: 80}}
	for _, c := range []struct {
		remaining, elsewhere int64
		near                 bool
		next                 int64
	}{
		{3, 0, true, 322},
		{3, 17, true, 1},
		{3, 18, false, 1},
		{3, 97, false, 1},
	} {
		d := algorithms.Decision{Allowed: true, Quota: 100, Remaining: c.remaining, Elsewhere: c.elsewhere, NextAfter: 322 * time.Second}
		if near, next := z.IsNear(&d), CeilSeconds(new(QuotaPolicy).Waits(&d, 1).Next); near != c.near || next != c.next {
			t.Errorf("%d and %d elsewhere of 100: near %v, t=%d, want %v, %d", c.remaining, c.elsewhere, near, next, c.near, c.next)
		}
	}
}
