package memorystore_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestOneRequestOfAnyCost: the memory that a log needs for a charge, a late cost and a refund
// does not depend on the cost.
func TestOneRequestOfAnyCost(t *testing.T) {
	s, _ := openWith(t, memorystore.Options{})
	rule := storetest.Rule(t, "tokens", "sliding_window_log", algorithms.Limit{Events: algorithms.MaxLogEvents, Window: time.Hour})
	for _, cost := range []int64{2, 1_000_000, algorithms.MaxLogEvents} {
		check := store.Check{Rule: rule, Key: "client", Cost: cost}
		var d [1]algorithms.Decision
		before := allocated()
		if err := s.Take(context.Background(), []store.Check{check}, d[:]); err != nil || !d[0].Allowed {
			t.Fatal(err, d[0])
		}
		s.Adjust(store.Adjustment{Check: check, At: d[0].Booked(), Delta: cost})
		s.Adjust(store.Adjustment{Check: check, At: d[0].Booked(), Delta: -2 * cost})
		// This includes what tests that run at the same time allocate.
		if n := allocated() - before; n > 1<<20 {
			t.Errorf("cost %d: %d bytes were allocated, want at most 1 MB", cost, n)
		}
		if d := take(t, s, rule, "client"); d.Remaining != algorithms.MaxLogEvents-1 {
			t.Errorf("cost %d: %d remain after all was given back", cost, d.Remaining)
		}
		if err := s.Reset(context.Background(), rule, "client"); err != nil {
			t.Fatal(err)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
