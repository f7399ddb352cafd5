package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// holds checks that a rule with a hold admits exactly what the limit allows when one process asks, whether the store charges
// ahead or not, and counts in the states of the limit without one.
func holds(t *testing.T, open Open) {
	for _, name := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, open)
			a, err := algorithms.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			limit := per(100, time.Hour)
			limit.Hold = algorithms.MaxHold
			rule, err := store.NewRule("z", a, limit, 0)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "admitted", b.held(rule, "k", 130), 100)
			equal(t, "admitted of another key", b.held(rule, "other", 1), 1)
			if d := b.peek(rule, "other", 1, nil); d.Remaining != 99 || d.Quota != 100 {
				t.Errorf("another key after one request: %+v", d)
			}
			plain := Rule(t, "z", name, per(100, time.Hour))
			equal(t, "admitted by the limit without a hold", b.admitted(plain, "k", 130), 0)
		})
	}
}

// held counts how many of n requests pass. Their decisions are of a time that is not known exactly.
func (b *bench) held(rule *store.Rule, key string, n int) (passed int) {
	b.Helper()
	for range n {
		var d [1]algorithms.Decision
		if err := b.store.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: 1}}, d[:]); err != nil {
			b.Fatalf("take: %v", err)
		}
		if d[0].Allowed {
			passed++
		}
	}
	return passed
}
