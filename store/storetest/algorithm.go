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
