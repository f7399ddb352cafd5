package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What holds for every algorithm. They differ in how the quota comes back, but all of them are exact.

// ten returns a rule for ten requests in a minute.
func ten(b *bench, name string) *store.Rule {
	return Rule(b, "zone", name, Limit(name, 10, time.Minute))
}

// longest is how long what is used of ten counts.
func longest(name string) time.Duration {
	if name == "sliding_window_counter" {
		return 2 * time.Minute // because it remembers the previous window
	}
	return time.Minute
}

func admitsTheLimit(b *bench, name string) {
	rule, longest := ten(b, name), longest(name)
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

func nextAndResetAreExact(b *bench, name string) {
	rule := ten(b, name)
	b.take(rule, "client", 2)
	b.wait(1234567 * time.Microsecond)
	d := b.take(rule, "client", 4)
	b.wait(d.NextAfter - time.Microsecond)
	equal(b, "remaining just before next", b.take(rule, "client", 0).Remaining, d.Remaining)
	b.wait(time.Microsecond)
	if now := b.take(rule, "client", 0).Remaining; now <= d.Remaining {
		b.Fatalf("remaining at next: %d, was %d", now, d.Remaining)
	}
	b.wait(d.ResetAfter - d.NextAfter)
	equal(b, "at reset", b.take(rule, "client", 0), algorithms.Decision{Allowed: true, Quota: 10, Remaining: 10})
}

func aRefusalChangesNothing(b *bench, name string) {
	rule := ten(b, name)
	equal(b, "admitted", b.admitted(rule, "client", 10), 10)
	before := b.take(rule, "client", 1)
	for range 50 {
		b.take(rule, "client", 1)
		b.take(rule, "client", 11)
	}
	equal(b, "after 100 refusals", b.take(rule, "client", 1), before)
	b.wait(before.RetryAfter)
	equal(b, "after the wait", b.take(rule, "client", 1).Allowed, true)
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

func timeThatGoesBack(b *bench, name string) {
	rule := ten(b, name)
	equal(b, "admitted", b.admitted(rule, "client", 20), 10)
	first := b.take(rule, "client", 1).RetryAfter
	for range 3 {
		b.wait(-10 * time.Second)
		equal(b, "earlier", b.admitted(rule, "client", 5), 0)
	}
	equal(b, "the wait grows by the step", b.take(rule, "client", 1).RetryAfter, first+30*time.Second)
	b.wait(30*time.Second + first)
	equal(b, "when time has caught up", b.take(rule, "client", 1).Allowed, true)
}

// aStepOfTheClock: a step back by more than a window refuses nobody for longer than a window, and gives nobody more than
// the limit once more. Slots are held for up to an hour, because leases may be that long.
func aStepOfTheClock(b *bench, name string) {
	for _, step := range []time.Duration{
		time.Second, 61 * time.Second, 10 * time.Minute, 2 * time.Hour, 25 * time.Hour, 400 * 24 * time.Hour, 3650 * 24 * time.Hour,
	} {
		if name == "concurrency" && step <= algorithms.MaxLease {
			continue
		}
		for _, step := range []time.Duration{step, -step} {
			b, rule := b.another(), ten(b, name)
			equal(b, "admitted before", b.admitted(rule, "heavy", 20), 10)
			b.take(rule, "light", 1)
			b.wait(step)
			if n := b.admitted(rule, "heavy", 30); n > 10 {
				b.Errorf("step %v: %d admitted at once", step, n)
			}
			if d := b.take(rule, "heavy", 1); d.RetryAfter > longest(name)+min(max(-step, 0), time.Minute) {
				b.Errorf("step %v: %+v", step, d)
			}
			for i := range 30 {
				if d := b.take(rule, "light", 1); !d.Allowed && (step < -time.Minute || step > 0) {
					b.Errorf("step %v: request %d below the limit: %+v", step, i, d)
				}
				b.wait(15 * time.Second)
			}
			if d := b.take(rule, "heavy", 1); !d.Allowed {
				b.Errorf("step %v: minutes later: %+v", step, d)
			}
		}
	}
}

func concurrentRequests(b *bench, name string) {
	AdmitsExactly(b, Rule(b, "zone", name, Limit(name, 100, time.Hour)), 500, 100, b.store)
}

// AdmitsExactly sends n concurrent requests for one key through stores that share their
// states. It fails the test unless exactly want of them pass.
func AdmitsExactly(t testing.TB, rule *store.Rule, n int, want int64, stores ...store.Store) {
	t.Helper()
	var passed, failed atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var d [1]algorithms.Decision
			checks := []store.Check{{Rule: rule, Key: "client", Cost: 1, LeaseID: LeaseID(rule)}}
			switch err := stores[i%len(stores)].Take(context.Background(), checks, d[:]); {
			case err != nil:
				failed.Add(1)
			case d[0].Allowed:
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	equal(t, "failed", failed.Load(), 0)
	equal(t, "admitted", passed.Load(), want)
}
