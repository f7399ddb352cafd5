package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestStats: the statistics count slots that are held, and refusals for which Redis was not
// asked.
func TestStats(t *testing.T) {
	t.Parallel()
	s := open(t, remembers(redistest.Shared(t)))
	stats := s.Stats()
	if len(stats.InUse) != 0 || stats.DenyHits != 0 {
		t.Fatalf("at first: %+v", stats)
	}
	none := storetest.Rule(t, "none", "fixed_window", algorithms.Limit{Events: 0, Window: time.Hour})
	for range 10 {
		ask(t, s, store.Check{Rule: none, Key: "client", Cost: 1})
	}
	slots := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 5, Lease: time.Minute})
	for range 3 {
		ask(t, s, store.Check{Rule: slots, Key: "client", Cost: 1, LeaseID: storetest.LeaseID(slots)})
	}
	if stats = s.Stats(); stats.InUse["slots"] != 3 || stats.DenyHits != 9 {
		t.Errorf("3 slots are held, 9 of 10 refusals were remembered: %+v", stats)
	}
	if stats.Breaker != store.BreakerClosed {
		t.Errorf("the breaker is %s", stats.Breaker)
	}
}

// TestHeldUntilAllIsBack: giving back a part of a charge leaves the rest held, so it is still
// renewed.
func TestHeldUntilAllIsBack(t *testing.T) {
	t.Parallel()
	s := open(t, at(redistest.Shared(t)))
	slots := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 5})
	c := store.Check{Rule: slots, Key: "client", Cost: 3, LeaseID: storetest.LeaseID(slots)}
	ask(t, s, c)
	for _, step := range []struct{ delta, held int64 }{{-1, 1}, {-2, 1}, {-3, 0}} {
		s.Adjust(store.Adjustment{Check: c, Delta: step.delta})
		if got := s.Stats().InUse["slots"]; got != step.held {
			t.Errorf("after %d of -3: %d held, want %d", step.delta, got, step.held)
		}
	}
}
