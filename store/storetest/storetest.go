// Package storetest holds the contract of [store.Store] as tests. A store's test of it is one
// call of [Run].
package storetest

import (
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

// parts are the suite. Each begins with an empty store: once, or for each algorithm.
var parts = []struct {
	name string
	once func(b *bench)
	each func(b *bench, algorithm string)
}{
	{name: "AsAlgorithms", once: asAlgorithms},
	{name: "AdmitsTheLimit", each: admitsTheLimit},
	{name: "RetryAfterIsExact", each: retryAfterIsExact},
	{name: "NeverAllowed", each: neverAllowed},
	{name: "ConcurrentRequests", each: concurrentRequests},
	{name: "AllOrNothing", each: allOrNothing},
	{name: "TwelveZones", once: twelveZones},
	{name: "Keys", each: keys},
	{name: "Slots", once: slots},
	{name: "Turns", once: turns},
	{name: "OverrideOfAnotherFamily", each: overrideOfAnotherFamily},
	{name: "AdjustedWhereCharged", each: adjustedWhereCharged},
	{name: "LeasesOutliveAShorterOne", once: leasesOutlive},
	{name: "Bans", each: bans},
	{name: "RefusalsCountedTogether", once: banWindow},
	{name: "KeyRulesTogether", each: keyRulesTogether},
	{name: "Adjustments", each: adjustments},
	{name: "Peeks", each: peekChangesNothing},
	{name: "Overrides", each: overrides},
	{name: "Holds", each: holds},
	{name: "Lists", once: lists},
	{name: "Networks", once: networks},
}

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			if part.once != nil {
				part.once(start(t, open))
				return
			}
			for _, name := range algorithms.Names() {
				t.Run(name, func(t *testing.T) { part.each(start(t, open), name) })
			}
		})
	}
}

// bench is a store under test, with its clock.
type bench struct {
	testing.TB
	open   Open
	store  store.Store
	setNow func(int64)
	now    int64
}

func start(t testing.TB, open Open) *bench {
	s, setNow := open(t)
	b := &bench{TB: t, open: open, store: s, setNow: setNow, now: Start}
	setNow(b.now)
	return b
}

// another returns a bench with another store, which is empty.
func (b *bench) another() *bench { return start(b.TB, b.open) }

// notForSlots skips the test of an algorithm that is a Leaser: its charges are given back as a whole, and have no
// window.
func (b *bench) notForSlots(algorithm string) {
	b.Helper()
	if algorithm == "concurrency" {
		b.Skip("slots are not counted in windows")
	}
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
	return b.takeWith(rule, key, cost, nil)
}

// takeWith takes a check with key rules.
func (b *bench) takeWith(rule *store.Rule, key string, cost int64, rules *store.KeyRules) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost, KeyRules: rules})[0]
}

func (b *bench) takeAll(checks ...store.Check) []algorithms.Decision {
	b.Helper()
	decisions := make([]algorithms.Decision, len(checks))
	for i := range checks {
		checks[i].LeaseID = LeaseID(checks[i].Rule)
	}
	b.ok(b.store.Take(b.Context(), checks, decisions))
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

// ok fails the test if there is an error.
func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}
