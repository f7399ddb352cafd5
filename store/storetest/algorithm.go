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

// perAlgorithm tests what holds for every algorithm. They differ in how the quota comes back,
// but all of them are exact.
func perAlgorithm(t *testing.T, open Open, name string) {
	limit := Limit(name, 10, time.Minute)

	longest := time.Minute
	if name == "sliding_window_counter" {
		longest = 2 * time.Minute // because it remembers the previous window
	}

	t.Run("AdmitsTheLimit", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		for i := range int64(10) {
			d := b.take(rule, "client", 1)
			if !d.Allowed || d.Quota != 10 || d.Remaining != 9-i || d.RetryAfter != 0 {
				t.Fatalf("request %d: %s", i+1, describe(d))
			}
			if d.NextAfter <= 0 || d.ResetAfter < d.NextAfter || d.ResetAfter > longest {
				t.Fatalf("request %d: next and reset are not within the window: %s", i+1, describe(d))
			}
		}
		d := b.take(rule, "client", 1)
		if d.Allowed || d.Remaining != 0 || d.RetryAfter <= 0 || d.RetryAfter > longest {
			t.Fatalf("request 11: %s", describe(d))
		}
		equal(t, "another client", b.admitted(rule, "other", 11), 10)
	})

	t.Run("RetryAfterIsExact", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		for _, cost := range []int64{1, 3, 7, 10} {
			for b.take(rule, "client", 1).Allowed {
				b.wait(777_777 * time.Microsecond)
			}
			wait := b.take(rule, "client", cost).RetryAfter
			b.wait(wait - time.Microsecond)
			if d := b.take(rule, "client", cost); d.Allowed || d.RetryAfter != time.Microsecond {
				t.Fatalf("cost %d, one microsecond early: %s", cost, describe(d))
			}
			b.wait(time.Microsecond)
			if d := b.take(rule, "client", cost); !d.Allowed {
				t.Fatalf("cost %d, after %v: %s", cost, wait, describe(d))
			}
		}
	})

	t.Run("NextAndResetAreExact", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.take(rule, "client", 2)
		b.wait(1234567 * time.Microsecond)
		d := b.take(rule, "client", 4)
		remaining := d.Remaining
		b.wait(d.NextAfter - time.Microsecond)
		equal(t, "remaining just before next", b.take(rule, "client", 0).Remaining, remaining)
		b.wait(time.Microsecond)
		if now := b.take(rule, "client", 0).Remaining; now <= remaining {
			t.Fatalf("remaining at next: %d, was %d", now, remaining)
		}
		b.wait(d.ResetAfter - d.NextAfter)
		full := b.take(rule, "client", 0)
		if full.Remaining != 10 || full.ResetAfter != 0 || full.NextAfter != 0 {
			t.Fatalf("at reset: %s", describe(full))
		}
	})

	t.Run("ARefusalChangesNothing", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		equal(t, "admitted", b.admitted(rule, "client", 10), 10)
		before := b.take(rule, "client", 1)
		for range 50 {
			b.take(rule, "client", 1)
			b.take(rule, "client", 11)
		}
		equal(t, "after 100 refusals", b.take(rule, "client", 1), before)
		b.wait(before.RetryAfter)
		if d := b.take(rule, "client", 1); !d.Allowed {
			t.Fatalf("after the wait: %s", describe(d))
		}
	})

	t.Run("PeekChargesNothing", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		fresh := b.take(rule, "client", 0)
		equal(t, "fresh", fresh, algorithms.Decision{Allowed: true, Quota: 10, Remaining: 10})
		b.take(rule, "client", 3)
		for range 20 {
			equal(t, "remaining", b.take(rule, "client", 0).Remaining, 7)
		}
		b.take(rule, "client", 7)
		if d := b.take(rule, "client", 0); !d.Allowed || d.Remaining != 0 {
			t.Fatalf("peek at nothing left: %s", describe(d))
		}
	})

	t.Run("CostAboveTheLimitNever", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		for _, cost := range []int64{11, algorithms.MaxEvents} {
			d := b.take(rule, "client", cost)
			equal(t, "decision", d, algorithms.Decision{Quota: 10, Remaining: 10, RetryAfter: algorithms.Never})
		}
		equal(t, "afterwards", b.take(rule, "client", 10).Allowed, true)
	})

	t.Run("ZeroRefusesAll", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, Limit(name, 0, time.Minute))
		equal(t, "decision", b.take(rule, "client", 1), algorithms.Decision{RetryAfter: algorithms.Never})
		b.wait(time.Hour)
		equal(t, "an hour later", b.take(rule, "client", 1), algorithms.Decision{RetryAfter: algorithms.Never})
	})

	t.Run("TimeThatGoesBack", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		equal(t, "admitted", b.admitted(rule, "client", 20), 10)
		first := b.take(rule, "client", 1).RetryAfter
		for range 3 {
			b.wait(-10 * time.Second)
			equal(t, "earlier", b.admitted(rule, "client", 5), 0)
		}
		equal(t, "the wait grows by the step", b.take(rule, "client", 1).RetryAfter, first+30*time.Second)
		b.wait(30*time.Second + first)
		if d := b.take(rule, "client", 1); !d.Allowed {
			t.Fatalf("when time has caught up: %s", describe(d))
		}
	})

	// A step back by more than a window refuses nobody for longer than a window, and gives nobody more than the
	// limit once more. Slots are held for up to an hour, because leases may be that long.
	t.Run("AStepOfTheClock", func(t *testing.T) {
		for _, step := range []time.Duration{time.Second, 61 * time.Second, 10 * time.Minute, 2 * time.Hour, 25 * time.Hour, 400 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
			if name == "concurrency" && step <= algorithms.MaxLease {
				continue
			}
			for _, step := range []time.Duration{step, -step} {
				b, rule := start(t, open), Rule(t, "zone", name, limit)
				equal(t, "admitted before", b.admitted(rule, "heavy", 20), 10)
				b.take(rule, "light", 1)
				b.wait(step)
				if n := b.admitted(rule, "heavy", 30); n > 10 {
					t.Errorf("step %v: %d admitted at once", step, n)
				}
				if d := b.take(rule, "heavy", 1); d.RetryAfter > longest+min(max(-step, 0), time.Minute) {
					t.Errorf("step %v: %s", step, describe(d))
				}
				for i := range 30 {
					if d := b.take(rule, "light", 1); !d.Allowed && (step < -time.Minute || step > 0) {
						t.Errorf("step %v: request %d below the limit: %s", step, i, describe(d))
					}
					b.wait(15 * time.Second)
				}
				if d := b.take(rule, "heavy", 1); !d.Allowed {
					t.Errorf("step %v: minutes later: %s", step, describe(d))
				}
			}
		}
	})

	t.Run("ResetForgets", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		equal(t, "admitted", b.admitted(rule, "client", 20), 10)
		b.admitted(rule, "other", 4)
		if err := b.store.Reset(context.Background(), rule, "client"); err != nil {
			t.Fatal(err)
		}
		equal(t, "after reset", b.admitted(rule, "client", 20), 10)
		equal(t, "another key keeps its state", b.admitted(rule, "other", 20), 6)
	})

	t.Run("ConcurrentRequestsAdmitExactly100", func(t *testing.T) {
		s, _ := open(t)
		AdmitsExactly(t, Rule(t, "zone", name, Limit(name, 100, time.Hour)), 500, 100, s)
	})
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
