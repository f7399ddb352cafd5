//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestAdjustmentsArePatient: an adjustment has at least as long as a request, the timeout, and a second if that is
// less. What it has not heard of by then is given up.
func TestAdjustmentsArePatient(t *testing.T) {
	t.Parallel()
	for timeout, lost := range map[time.Duration]uint64{time.Minute: 0, 50 * time.Millisecond: 1} {
		proxy := faultproxy.Start(t, redistest.Start(t).Addr())
		s, rule := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: timeout}), hourly(t)
		var d algorithms.Decision
		patient.Until(t, "a charge", func() (ok bool) {
			var err error
			d, err = try(s, rule, "key", 5)
			return err == nil
		})
		proxy.Delay(1200 * time.Millisecond) // both ways of a call are loopback, so this is its time
		s.Adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "key", Cost: 5}, At: d.Booked(), Turn: d.Turn(), Delta: -2})
		s.Flush()
		if got := s.Stats().Lost; got != lost {
			t.Errorf("with a timeout of %v, %d adjustments are given up, want %d", timeout, got, lost)
		}
	}
}
