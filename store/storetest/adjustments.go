package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// adjustments tests charges that change afterwards.
func adjustments(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // see giveBack
		}
		t.Run(name, func(t *testing.T) { adjustmentsOf(t, open, name) })
	}

	t.Run("DebtOfABucket", func(t *testing.T) {
		for _, name := range []string{"token_bucket", "leaky_bucket"} {
			b := start(t, open)
			rule := Rule(t, "zone", name, per(10, 10*time.Second))
			late := b.charged(rule, 4)
			b.adjust(late, 11)
			d := b.take(rule, "client", 0)
			equal(t, "left in debt", d.Remaining, 0)
			equal(t, "until all is back", d.ResetAfter, 15*time.Second)
			equal(t, "until the debt and one more are back", b.take(rule, "client", 1).RetryAfter, 6*time.Second)
			b.wait(6*time.Second - time.Microsecond)
			equal(t, "early", b.take(rule, "client", 1).Allowed, false)
			b.wait(time.Microsecond)
			equal(t, "out of debt", b.admitted(rule, "client", 5), 1)
		}
	})

	t.Run("ADebtIsAtMostADay", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", per(1, time.Hour))
		late := b.charged(rule, 1)
		b.adjust(late, algorithms.MaxEvents)
		b.adjust(late, 5)
		equal(t, "the wait", b.take(rule, "client", 1).RetryAfter, 25*time.Hour)
	})

	t.Run("AnHourThatIsOverGivesNothingBack", func(t *testing.T) {
		for _, name := range []string{"fixed_window", "sliding_window_log", "token_bucket", "leaky_bucket"} {
			b := start(t, open)
			rule := Rule(t, "zone", name, per(5, time.Hour))
			old := b.charged(rule, 5)
			b.wait(time.Hour)
			b.take(rule, "client", 5)
			b.adjust(old, -5)
			equal(t, name, b.take(rule, "client", 1).Allowed, false)
		}
	})

	adjustmentsAfterAReset(t, open)

	// The part of a charge that has come back by itself is not given back again.
	t.Run("OnlyTheRestOfABucketComesBack", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", per(10, 10*time.Second))
		first := b.charged(rule, 5)
		b.wait(4900 * time.Millisecond)
		b.charged(rule, 1)
		b.adjust(first, -5)
		equal(t, "at once", b.admitted(rule, "client", 20), 9)
	})
}

// adjustmentsAfterAReset tests adjustments of charges that were made before a reset.
func adjustmentsAfterAReset(t *testing.T, open Open) {
	t.Run("WhatWasResetGivesNothingBack", func(t *testing.T) {
		for _, name := range algorithms.Names() {
			for _, rule := range Kinds(t, name, 10, time.Hour) {
				b := start(t, open)
				old := b.charged(rule, 10)
				b.wait(time.Second)
				b.reset(rule)
				b.wait(time.Second)
				made := b.charged(rule, 10)
				b.wait(time.Second)
				b.adjust(old, -10)
				equal(t, rule.ID()+": admitted after a refund from before a reset", b.admitted(rule, "client", 20), 0)
				b.adjust(made, -10)
				equal(t, rule.ID()+": and after one from behind it", b.admitted(rule, "client", 20), 10)
			}
		}
	})

	t.Run("ALateCostCountsAfterAReset", func(t *testing.T) {
		for _, name := range algorithms.Names() {
			if name == "concurrency" {
				continue
			}
			for _, rule := range Kinds(t, name, 10, time.Hour) {
				b := start(t, open)
				old := b.charged(rule, 10)
				b.wait(time.Second)
				b.reset(rule)
				b.wait(time.Second)
				b.adjust(old, 3)
				b.adjust(old, -10)
				equal(t, rule.ID()+": left", b.take(rule, "client", 0).Remaining, 7)
			}
		}
	})
}

// adjustmentsOf tests an algorithm that is not a Leaser.
func adjustmentsOf(t *testing.T, open Open, name string) {
	limit := per(10, time.Minute)

	t.Run("AllOfItComesBack", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		c := b.charged(rule, 4)
		b.adjust(c, -4)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		equal(t, "never more than there is", b.take(rule, "client", 10).Allowed, true)
		b.adjust(c, 0)
		equal(t, "a delta of 0 changes nothing", b.take(rule, "client", 1).Allowed, false)
	})

	t.Run("SomeOfItComesBack", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.adjust(b.charged(rule, 7), -5)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 8)
		b.adjust(b.charged(rule, 8), -3)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 3)
	})

	// A charge made while the store's clock is behind the key's last charge counts as made at
	// that charge. A refund finds it there, even if a window has begun in between.
	t.Run("ARefundWhileTheClockHasGoneBack", func(t *testing.T) {
		for _, back := range []time.Duration{time.Microsecond, 500 * time.Millisecond, 3 * time.Minute} {
			b, rule := start(t, open), Rule(t, "zone", name, per(10, time.Hour))
			b.charged(rule, 1)
			b.wait(-back)
			for range 3 {
				late := b.charged(rule, 4)
				b.adjust(late, -4)
				equal(t, "left", b.take(rule, "client", 0).Remaining, 9)
				b.adjust(b.charged(rule, 4), -3)
				b.adjust(late, -1)
				equal(t, "left", b.take(rule, "client", 0).Remaining, 9)
			}
		}
	})

	t.Run("MoreThanWasCharged", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.adjust(b.charged(rule, 2), -100)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		b.adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 5}, At: b.now, Turn: b.now}, -5)
		equal(t, "refunding what was never charged", b.admitted(rule, "client", 20), 10)
	})

	costsKnownLate(t, open, name, limit)

	t.Run("AKeyThatIsGivenBackIsNew", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.adjust(b.charged(rule, 10), -10)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		equal(t, "like a new one", b.take(rule, "client", 3), b.take(rule, "other", 3))
	})
}

// costsKnownLate tests charges that turn out larger than what was booked.
func costsKnownLate(t *testing.T, open Open, name string, limit algorithms.Limit) {
	t.Run("CostKnownLate", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.adjust(b.charged(rule, 1), 6)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 3)
		b.adjust(b.charged(rule, 3), 30)
		wait := b.take(rule, "client", 1).RetryAfter
		b.wait(wait - time.Microsecond)
		equal(t, "early", b.take(rule, "client", 1).RetryAfter, time.Microsecond)
		b.wait(time.Microsecond)
		equal(t, "then", b.take(rule, "client", 1).Allowed, true)
	})

	t.Run("CostKnownAfterTheStateIsGone", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		c := b.charged(rule, 1)
		b.wait(time.Hour)
		b.adjust(c, 3)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 7)
	})
}

// independent tests checks that are decided by themselves.
func independent(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			b := start(t, open)
			small, big := Rule(t, "small", name, Limit(name, 2, time.Minute)), Rule(t, "big", name, Limit(name, 5, time.Minute))
			alone := Rule(t, "alone", name, Limit(name, 3, time.Minute))
			for i := range int64(6) {
				d := b.takeAll(
					store.Check{Rule: big, Key: "k", Cost: 1},
					store.Check{Rule: alone, Key: "k", Cost: 1, Independent: true},
					store.Check{Rule: small, Key: "k", Cost: 1})
				equal(t, "the independent check, when another is refused", d[1].Allowed, i < 3)
				equal(t, "another, when the independent check is refused", d[2].Allowed, i < 2)
				equal(t, "left in big", d[0].Remaining, 5-min(i+1, 2))
				equal(t, "left in alone", d[1].Remaining, max(0, 2-i))
			}
			for range 4 {
				d := b.takeAll(
					store.Check{Rule: alone, Key: "k", Cost: 1, Independent: true},
					store.Check{Rule: big, Key: "k", Cost: 1})
				equal(t, "refused by itself", d[0].Allowed, false)
			}
			equal(t, "big was charged beside an independent refusal", b.take(big, "k", 1).Allowed, false)
		})
	}
}

// charged takes a cost, which must pass, and returns an adjustment for it.
func (b *bench) charged(rule *store.Rule, cost int64) store.Adjustment {
	b.Helper()
	c := store.Check{Rule: rule, Key: "client", Cost: cost, LeaseID: LeaseID(rule)}
	d := b.takeNamed(c)
	if !d.Allowed {
		b.Fatalf("cost %d: %s", cost, describe(d))
	}
	return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Override: d.Override}
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
	if err := b.store.Reset(context.Background(), rule, "client"); err != nil {
		b.Fatal(err)
	}
}

// adjust makes an adjustment and waits until it has taken effect: until a slot that is given
// back after it is free.
func (b *bench) adjust(adjustment store.Adjustment, delta int64) {
	b.Helper()
	adjustment.Delta = delta
	marker := store.Check{Rule: Rule(b, "marker", "concurrency", algorithms.Limit{Events: 1}), Key: adjustment.Key, Cost: 1}
	marker.LeaseID = LeaseID(marker.Rule)
	equal(b, "marker", b.takeNamed(marker).Allowed, true)
	b.store.Adjust(adjustment, store.Adjustment{Check: marker, Delta: -1})
	b.await(marker.Rule, 1)
}
