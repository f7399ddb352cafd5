package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/linear"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What holds for every algorithm. They differ in how the quota comes back, but all of them are exact.

// ten returns a rule for ten requests in a minute.
func ten(b *bench, name string) *store.Rule {
	return Rule(b, "zone", name, Limit(name, 10, time.Minute))
}

func admitsTheLimit(b *bench, name string) {
	rule, longest := ten(b, name), 2*time.Minute // sliding_window_counter remembers the previous window
	for i := range int64(10) {
		d := b.take(rule, "client", 1)
		if !d.Allowed || d.Quota != 10 || d.Remaining != 9-i || d.RetryAfter != 0 {
			b.Fatalf("request %d: %+v", i+1, d)
		}
		if d.NextAfter <= 0 || d.ResetAfter < d.NextAfter || d.ResetAfter > longest {
			b.Fatalf("request %d: next and reset are not within the window: %+v", i+1, d)
		}
	}
	d := b.take(rule, "client", 1)
	if d.Allowed || d.Remaining != 0 || d.RetryAfter <= 0 || d.RetryAfter > longest {
		b.Fatalf("request 11: %+v", d)
	}
	equal(b, "another client", b.admitted(rule, "other", 11), 10)
}

func retryAfterIsExact(b *bench, name string) {
	rule := ten(b, name)
	for _, cost := range []int64{1, 3, 7, 10} {
		for b.take(rule, "client", 1).Allowed {
			b.wait(777_777 * time.Microsecond)
		}
		b.wait(b.take(rule, "client", cost).RetryAfter - time.Microsecond)
		if d := b.take(rule, "client", cost); d.Allowed || d.RetryAfter != time.Microsecond {
			b.Fatalf("cost %d, one microsecond early: %+v", cost, d)
		}
		b.wait(time.Microsecond)
		equal(b, "after the wait", b.take(rule, "client", cost).Allowed, true)
	}
}

// neverAllowed: no wait is long enough for a cost above the limit, and for any cost if the limit is 0.
func neverAllowed(b *bench, name string) {
	rule, none := ten(b, name), Rule(b, "none", name, Limit(name, 0, time.Minute))
	above := algorithms.Decision{Quota: 10, Remaining: 10, RetryAfter: algorithms.Never}
	for _, cost := range []int64{11, algorithms.MaxEvents} {
		equal(b, "above the limit", b.take(rule, "client", cost), above)
	}
	equal(b, "afterwards", b.take(rule, "client", 10).Allowed, true)
	for range 2 {
		equal(b, "at a limit of 0", b.take(none, "client", 1), algorithms.Decision{RetryAfter: algorithms.Never})
		b.wait(time.Hour)
	}
}

// concurrentRequests: of many requests for one key at once, as many pass as the limit allows.
func concurrentRequests(b *bench, name string) {
	rule := Rule(b, "zone", name, Limit(name, 100, time.Hour))
	var passed, failed atomic.Int64
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() {
			var d [1]algorithms.Decision
			checks := []store.Check{{Rule: rule, Key: "client", Cost: 1, LeaseID: LeaseID(rule)}}
			switch err := b.store.Take(context.Background(), checks, d[:]); {
			case err != nil:
				failed.Add(1)
			case d[0].Allowed:
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	equal(b, "failed", failed.Load(), 0)
	equal(b, "admitted", passed.Load(), 100)
}

// asAlgorithms asks for keys of all algorithms, in one zone or in several, with overrides and bans: requests, peeks, dry runs,
// adjustments, resets, and steps of the clock, drawn by chance. All that is answered must be what package algorithms says.
func asAlgorithms(b *bench) {
	f := &linear.Fleet{
		Stores: []store.Store{b.store}, Start: Start, Operations: 4000, Clients: 1, Seed: 1,
		SetTime: func(now int64) error { b.setNow(now); return nil },
	}
	f.Run(b).Check(b)
}

// holds checks that a rule with a hold admits exactly what the limit allows when one process asks, whether the store
// charges ahead or not, and counts in the states of the limit without one.
func holds(b *bench, name string) {
	b.notForSlots(name)
	limit := per(100, time.Hour)
	plain := Rule(b, "z", name, limit)
	limit.Hold = algorithms.MaxHold
	rule := Rule(b, "z", name, limit)
	passed := 0
	for range 130 {
		if b.takeNamed(store.Check{Rule: rule, Key: "k", Cost: 1}).Allowed { // the time of the decision is not known exactly
			passed++
		}
	}
	equal(b, "admitted", passed, 100)
	equal(b, "admitted of another key", b.takeNamed(store.Check{Rule: rule, Key: "other", Cost: 1}).Allowed, true)
	if d := b.takeAll(store.Check{Rule: rule, Key: "other", Cost: 1, Peek: true})[0]; d.Remaining != 99 || d.Quota != 100 {
		b.Errorf("another key after one request: %+v", d)
	}
	equal(b, "admitted by the limit without a hold", b.admitted(plain, "k", 130), 0)
}

// peek asks how one check would be decided, without any change.
func (b *bench) peek(rule *store.Rule, key string, cost int64, rules *store.KeyRules) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost, KeyRules: rules, Peek: true})[0]
}

// peekChangesNothing: a peek at a cost that would pass returns what is left, as a cost of 0 does. A peek at one
// that would be refused returns the refusal. All the room there is stays.
func peekChangesNothing(b *bench, name string) {
	rule, fresh := ten(b, name), algorithms.Decision{Allowed: true, Quota: 10, Remaining: 10}
	equal(b, "a peek at a key that never came", b.peek(rule, "client", 10, nil), fresh)
	equal(b, "its cost of 0", b.take(rule, "client", 0), fresh)
	b.take(rule, "client", 3)
	left := b.take(rule, "client", 0)
	for _, cost := range []int64{0, 1, 7} {
		equal(b, "would pass", b.peek(rule, "client", cost, nil), left)
	}
	for _, cost := range []int64{8, 10, 11} {
		equal(b, "would be refused", b.peek(rule, "client", cost, nil), b.take(rule, "client", cost))
	}
	equal(b, "left after that", b.take(rule, "client", 0), left)
	equal(b, "all that is left", b.take(rule, "client", 7).Allowed, true)
	equal(b, "nothing is left", b.peek(rule, "client", 1, nil), b.take(rule, "client", 1))
	equal(b, "for a cost of 0", b.take(rule, "client", 0).Allowed, true)
}
