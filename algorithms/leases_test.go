package algorithms_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestRefusalsDropNoLease: a refused request writes nothing but that leases from before a step of the clock
// end sooner, as in Lua. So a lease that has ended counts again when the clock goes back to before its end.
func TestRefusalsDropNoLease(t *testing.T) {
	const second = int64(1_000_000)
	var leases algorithms.Leases
	slots, params := algorithms.Concurrency{}, algorithms.Params{3, 60 * second}
	hour := 3600 * second
	slots.Lease(&leases, params, 48*hour, 2, "before the step")
	slots.Lease(&leases, params, 39*hour, 1, "short")
	if d := slots.Decide(&leases, params, 40*hour, 2); d.Allowed || d.RetryAfter.Seconds() != 60 || leases.Len() != 2 {
		t.Errorf("%+v, and %d leases are kept, want both", d, leases.Len())
	}
	if d := slots.Decide(&leases, params, 39*hour, 1); d.Allowed {
		t.Errorf("when the clock is back: %+v", d)
	}
}
