package memorystore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestLeasesAreRenewed: a slot stays taken for as long as it is held, however short its
// lease, and is free when it is given back.
func TestLeasesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openWithTimers(t, memorystore.Options{})
		rule := storetest.Rule(t, "zone", "concurrency", algorithms.Limit{Events: 1, Lease: time.Second})
		held := store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: storetest.LeaseID(rule)}
		var d [1]algorithms.Decision
		if err := s.Take(t.Context(), []store.Check{held}, d[:]); err != nil || !d[0].Allowed {
			t.Fatalf("the first: %+v, %v", d[0], err)
		}
		for i := range 100 {
			time.Sleep(777 * time.Millisecond)
			if take(t, s, rule, "client").Allowed {
				t.Fatalf("check %d: the slot was lent twice", i+1)
			}
		}
		s.Adjust(store.Adjustment{Check: held, Delta: -1})
		if !take(t, s, rule, "client").Allowed {
			t.Fatal("the slot was given back, but is not free")
		}
	})
}

// TestNothingIsLentAnew: slots that are given back while leases are being renewed stay free.
func TestNothingIsLentAnew(t *testing.T) {
	const slots = 1000
	synctest.Test(t, func(t *testing.T) {
		s := openWithTimers(t, memorystore.Options{})
		rule := storetest.Rule(t, "zone", "concurrency", algorithms.Limit{Events: slots, Lease: 3 * time.Second})
		for round := range 20 {
			held := make([]store.Check, slots)
			for i := range held {
				held[i] = store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: storetest.LeaseID(rule)}
				var d [1]algorithms.Decision
				if err := s.Take(t.Context(), held[i:i+1], d[:]); err != nil || !d[0].Allowed {
					t.Fatalf("round %d, slot %d: %+v, %v", round, i, d[0], err)
				}
			}
			time.Sleep(time.Second) // the store renews all leases now
			for i := range held {
				s.Adjust(store.Adjustment{Check: held[slots-1-i], Delta: -1})
			}
			synctest.Wait()
		}
	})
}

// TestOwnClockRenewsNothing: timers run by the machine's clock, so they must not change a
// store that has another clock.
func TestOwnClockRenewsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, setNow := openWith(t, memorystore.Options{})
		rule := storetest.Rule(t, "zone", "concurrency", algorithms.Limit{Events: 1, Lease: time.Second})
		take(t, s, rule, "client")
		setNow(storetest.Start + 999_999)
		time.Sleep(time.Minute) // plenty for timers
		setNow(storetest.Start + 1_000_001)
		if s.Sweep(); s.Keys() != 0 {
			t.Fatal("the lease has ended, but its key is still there")
		}
	})
}
