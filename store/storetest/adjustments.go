package storetest

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// charged takes a cost, which must pass, and returns an adjustment for it.
func (b *bench) charged(rule *store.Rule, cost int64) store.Adjustment {
	b.Helper()
	return b.chargedAs(store.Check{Rule: rule, Key: "client", Cost: cost, LeaseID: LeaseID(rule)})
}

func (b *bench) chargedAs(c store.Check) store.Adjustment {
	b.Helper()
	d := b.takeNamed(c)
	if !d.Allowed {
		b.Fatalf("cost %d: %+v", c.Cost, d)
	}
	return store.GiveBack(&c, &d)
}

// Kinds returns a rule for each kind of an algorithm.
func Kinds(t testing.TB, algorithm string, events int64, window time.Duration) (rules []*store.Rule) {
	base := Limit(algorithm, events, window)
	all := []algorithms.Limit{base}
	with := func(change func(l *algorithms.Limit)) {
		l := base
		change(&l)
		all = append(all, l)
	}
	switch algorithm {
	case "fixed_window":
		with(func(l *algorithms.Limit) { l.Align = algorithms.AlignFirstRequest })
		with(func(l *algorithms.Limit) { l.Window, l.Calendar = 0, algorithms.Day })
	case "token_bucket":
		with(func(l *algorithms.Limit) { l.Refill = algorithms.RefillInterval })
	case "leaky_bucket":
		with(func(l *algorithms.Limit) { l.Mode = algorithms.ModeQueue })
	}
	for _, l := range all {
		rules = append(rules, Rule(t, "zone", algorithm, l))
	}
	return rules
}

// reset makes the client of a rule new.
func (b *bench) reset(rule *store.Rule) {
	b.Helper()
	b.ok(b.store.Reset(b.Context(), rule, "client"))
}

// adjust makes an adjustment and waits until it has taken effect: until a slot that is given
// back after it is free.
func (b *bench) adjust(adjustment store.Adjustment, delta int64) {
	b.Helper()
	adjustment.Delta = delta
	marker := Rule(b, "marker", "concurrency", algorithms.Limit{Events: 1})
	b.store.Adjust(adjustment, b.charged(marker, 1))
	b.await(marker, 1)
}
