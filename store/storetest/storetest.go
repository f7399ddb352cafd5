// Package storetest holds the contract of [store.Store] as tests. A store's test of it is one
// call of [Run].
package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Open opens an empty store for one test. Its clock must stand still until setNow sets it, in
// microseconds since 1970; the suite first sets it to Start. The store must not renew leases
// by itself.
type Open func(t testing.TB) (s store.Store, setNow func(micros int64))

// Start is the first time of every test: a Wednesday afternoon at a multiple of no window.
var Start = time.Date(2026, 11, 18, 15, 4, 5, 678901000, time.UTC).UnixMicro()

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	t.Run("Algorithms", func(t *testing.T) {
		for _, name := range algorithms.Names() {
			t.Run(name, func(t *testing.T) { perAlgorithm(t, open, name) })
		}
	})
	t.Run("AllOrNothing", func(t *testing.T) { allOrNothing(t, open) })
	t.Run("Keys", func(t *testing.T) { keys(t, open) })
	t.Run("Field", func(t *testing.T) { field(t, open) })
	t.Run("Options", func(t *testing.T) { options(t, open) })
	t.Run("GiveBack", func(t *testing.T) { giveBack(t, open) })
	t.Run("Adjustments", func(t *testing.T) { adjustments(t, open) })
	t.Run("Independent", func(t *testing.T) { independent(t, open) })
	t.Run("Limits", func(t *testing.T) { limits(t, open) })
	t.Run("Peek", func(t *testing.T) { peeks(t, open) })
	t.Run("KeyRules", func(t *testing.T) { keyRules(t, open) })
	t.Run("Holds", func(t *testing.T) { holds(t, open) })
	t.Run("Lists", func(t *testing.T) { lists(t, open) })
	t.Run("Networks", func(t *testing.T) { networks(t, open) })
}

// bench is a store under test, with its clock.
type bench struct {
	testing.TB
	store  store.Store
	setNow func(int64)
	now    int64
}

func start(t testing.TB, open Open) *bench {
	s, setNow := open(t)
	b := &bench{TB: t, store: s, setNow: setNow, now: Start}
	setNow(b.now)
	return b
}

// wait moves the clock, backwards too.
func (b *bench) wait(d time.Duration) {
	b.Helper()
	if d%time.Microsecond != 0 {
		b.Fatalf("%v is no whole number of microseconds", d)
	}
	b.now += d.Microseconds()
	b.setNow(b.now)
}

// take decides one check, takeAll the checks of one request.
func (b *bench) take(rule *store.Rule, key string, cost int64) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost})[0]
}

func (b *bench) takeAll(checks ...store.Check) []algorithms.Decision {
	b.Helper()
	decisions := make([]algorithms.Decision, len(checks))
	for i := range checks {
		checks[i].LeaseID = LeaseID(checks[i].Rule)
	}
	if err := b.store.Take(context.Background(), checks, decisions); err != nil {
		b.Fatalf("take: %v", err)
	}
	for i := range decisions {
		equal(b, "time of the decision", decisions[i].At, b.now)
		decisions[i].At = 0 // so that decisions at different times can be compared
	}
	return decisions
}

var lastLeaseID atomic.Int64

// LeaseID returns a new name for [store.Check].LeaseID, or "" if the algorithm needs none.
func LeaseID(rule *store.Rule) string {
	if _, ok := rule.Algorithm().(algorithms.Leaser); !ok {
		return ""
	}
	return fmt.Sprint("lease ", lastLeaseID.Add(1))
}

// admitted counts how many of n requests of cost 1 pass.
func (b *bench) admitted(rule *store.Rule, key string, n int) int {
	b.Helper()
	passed := 0
	for range n {
		if b.take(rule, key, 1).Allowed {
			passed++
		}
	}
	return passed
}

// Rule returns a rule, and fails the test if the limit is not valid.
func Rule(t testing.TB, zone, algorithm string, limit algorithms.Limit) *store.Rule {
	t.Helper()
	a, err := algorithms.Get(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.NewRule(zone, a, limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func per(events int64, window time.Duration) algorithms.Limit {
	return algorithms.Limit{Events: events, Window: window}
}

// Limit returns a limit of events in a window; for a Leaser, of as many slots with a lease as
// long as the window.
func Limit(name string, events int64, window time.Duration) algorithms.Limit {
	if a, err := algorithms.Get(name); err == nil {
		if _, leases := a.(algorithms.Leaser); leases {
			return algorithms.Limit{Events: events, Lease: window}
		}
	}
	return per(events, window)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func describe(d algorithms.Decision) string { return fmt.Sprintf("%+v", d) }
