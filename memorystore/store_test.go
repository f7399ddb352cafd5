package memorystore_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/linear"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) { return openWith(t, memorystore.Options{}) })
}

// openWith returns a store whose clock the test moves.
func openWith(t testing.TB, options memorystore.Options) (*memorystore.Store, func(int64)) {
	t.Helper()
	now := new(atomic.Int64)
	now.Store(storetest.Start)
	options.Now = now.Load
	return openWithTimers(t, options), now.Store
}

// openWithTimers returns a store that sweeps and renews by itself, unless the options have a
// clock. Tests with timers run in a bubble of testing/synctest.
func openWithTimers(t testing.TB, options memorystore.Options) *memorystore.Store {
	t.Helper()
	s, err := memorystore.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestLinearizable: all answers to clients that ask at once are those of a store that carries out one
// operation after the other.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	s, setNow := openWith(t, memorystore.Options{})
	f := &linear.Fleet{
		Stores: []store.Store{s}, Start: storetest.Start, Operations: deep.Steps(10_000, 300_000), Clients: 16, Seed: deep.Seed(1),
		SetTime: func(now int64) error { setNow(now); return nil },
	}
	f.Run(t).Check(t)
}

// TestCountKeys: keys are counted by zone, whatever the kind of their state, until they
// expire.
func TestCountKeys(t *testing.T) {
	s, setClock := openWith(t, memorystore.Options{})
	var rules []*store.Rule
	for i, name := range []string{"token_bucket", "sliding_window_log", "fixed_window"} {
		rule := storetest.Rule(t, fmt.Sprint("zone", i), name, storetest.Limit(name, 1000, time.Hour))
		rules = append(rules, rule)
		for key := range 100 * (i + 1) {
			take(t, s, rule, fmt.Sprint(key))
		}
	}
	rules = append(rules, storetest.Rule(t, "unused", "fixed_window", storetest.Limit("fixed_window", 1000, time.Hour)))
	if got := s.CountKeys(rules); !slices.Equal(got, []int64{100, 200, 300, 0}) {
		t.Errorf("got %v", got)
	}
	setClock(storetest.Start + (2 * time.Hour).Microseconds())
	if got := s.CountKeys(rules); !slices.Equal(got, []int64{0, 0, 0, 0}) {
		t.Errorf("after two hours: %v", got)
	}
}

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
