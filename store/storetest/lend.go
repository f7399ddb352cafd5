package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lending checks that a rule of which parts may be lent admits exactly what the limit allows when one
// process asks, whether the store lends or not.
func lending(t *testing.T, open Open) {
	for _, name := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		t.Run(name, func(t *testing.T) {
			b := start(t, open)
			a, err := algorithms.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := store.NewLendingRule("z", a, per(100, time.Hour), 0, lend.MaxPeriod)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "admitted", b.lent(rule, "k", 130), 100)
			equal(t, "admitted of another key", b.lent(rule, "other", 1), 1)
			if d := b.peek(rule, "other", 1, nil); d.Remaining != 99 || d.Quota != 100 {
				t.Errorf("another key after one request: %+v", d)
			}
			plain := Rule(t, "z", name, per(100, time.Hour))
			equal(t, "admitted by the limit that is not lent", b.admitted(plain, "k", 130), 100)
		})
	}
}

// lent counts how many of n requests pass. Their decisions are of a time that is not known exactly.
func (b *bench) lent(rule *store.Rule, key string, n int) (passed int) {
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
