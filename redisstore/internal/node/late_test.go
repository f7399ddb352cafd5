package node

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestTooLateToAsk: a caller that runs out of time before its call is made does not make it, and
// its request keeps nothing that the next caller would take for its own.
func TestTooLateToAsk(t *testing.T) {
	b := newBatcher(time.Microsecond, new(distance), new(atomic.Int32), func(context.Context, *call) error { return nil })
	b.patience = time.Microsecond
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	late := 0
	for range 100_000 {
		b.mu.Lock()
		b.shared = true // as under load, when other callers have their turn first
		b.mu.Unlock()
		r := request(rule, "k", 1)
		if err := b.do(context.Background(), r); err != nil {
			late++
		} else if len(r.done) > 0 {
			t.Fatalf("a request that was answered also holds: %v", <-r.done)
		}
	}
	if late == 0 {
		t.Error("nobody was too late")
	}
}
