package storetest

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// corrections are about charges that change afterwards.
func corrections(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // see giveBack
		}
		t.Run(name, func(t *testing.T) { corrected(t, open, name) })
	}

	t.Run("DebtOfABucket", func(t *testing.T) {
		for _, name := range []string{"token_bucket", "leaky_bucket"} {
			b := start(t, open)
			rule := Rule(t, "zone", name, per(10, 10*time.Second))
			late := b.charged(rule, 4)
			b.correct(late, 11)
			d := b.take(rule, "client", 0)
			equal(t, "left in debt", d.Remaining, 0)
			equal(t, "until all is back", d.ResetAfter, 15*time.Second)
			equal(t, "until it is paid, and one more", b.take(rule, "client", 1).RetryAfter, 6*time.Second)
			b.wait(6*time.Second - time.Microsecond)
			equal(t, "early", b.take(rule, "client", 1).Allowed, false)
			b.wait(time.Microsecond)
			equal(t, "paid", b.admitted(rule, "client", 5), 1)
		}
	})

	t.Run("ADebtIsAtMostADay", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", per(1, time.Hour))
		late := b.charged(rule, 1)
		b.correct(late, algorithms.MaxEvents)
		b.correct(late, 5)
		equal(t, "the wait", b.take(rule, "client", 1).RetryAfter, 25*time.Hour)
	})

	t.Run("AnHourThatIsOverGivesNothingBack", func(t *testing.T) {
		for _, name := range []string{"fixed_window", "sliding_window_log", "token_bucket", "leaky_bucket"} {
			b := start(t, open)
			rule := Rule(t, "zone", name, per(5, time.Hour))
			old := b.charged(rule, 5)
			b.wait(time.Hour)
			b.take(rule, "client", 5)
			b.correct(old, -5)
			equal(t, name, b.take(rule, "client", 1).Allowed, false)
		}
	})

	// What has come back of a charge by itself is not given back once more.
	t.Run("OnlyTheRestOfABucketComesBack", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "token_bucket", per(10, 10*time.Second))
		first := b.charged(rule, 5)
		b.wait(4900 * time.Millisecond)
		b.charged(rule, 1)
		b.correct(first, -5)
		equal(t, "at once", b.admitted(rule, "client", 20), 9)
	})
}

// corrected holds for all algorithms that are not lent.
func corrected(t *testing.T, open Open, name string) {
	limit := per(10, time.Minute)

	t.Run("AllOfItComesBack", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		c := b.charged(rule, 4)
		b.correct(c, -4)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		equal(t, "never more than there is", b.take(rule, "client", 10).Allowed, true)
		b.correct(c, 0)
		equal(t, "nothing is nothing", b.take(rule, "client", 1).Allowed, false)
	})

	t.Run("SomeOfItComesBack", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.correct(b.charged(rule, 7), -5)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 8)
		b.correct(b.charged(rule, 8), -3)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 3)
	})

	// What is charged while the store's clock is behind the key counts as made when the key
	// was charged last. A refund finds it there, also if a window has begun in between.
	t.Run("ARefundWhileTheClockHasGoneBack", func(t *testing.T) {
		for _, back := range []time.Duration{time.Microsecond, 500 * time.Millisecond, 2 * time.Hour} {
			b, rule := start(t, open), Rule(t, "zone", name, per(10, time.Hour))
			b.charged(rule, 1)
			b.wait(-back)
			for range 3 {
				late := b.charged(rule, 4)
				b.correct(late, -4)
				equal(t, "left", b.take(rule, "client", 0).Remaining, 9)
				b.correct(b.charged(rule, 4), -3)
				b.correct(late, -1)
				equal(t, "left", b.take(rule, "client", 0).Remaining, 9)
			}
		}
	})

	t.Run("MoreThanWasCharged", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.correct(b.charged(rule, 2), -100)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		b.correct(store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 5}, At: b.now, Turn: b.now}, -5)
		equal(t, "of what was never charged", b.admitted(rule, "client", 20), 10)
	})

	t.Run("CostKnownLate", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.correct(b.charged(rule, 1), 6)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 3)
		b.correct(b.charged(rule, 3), 30)
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
		b.correct(c, 3)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 7)
	})

	t.Run("AKeyThatIsGivenBackIsNew", func(t *testing.T) {
		b, rule := start(t, open), Rule(t, "zone", name, limit)
		b.correct(b.charged(rule, 10), -10)
		equal(t, "left", b.take(rule, "client", 0).Remaining, 10)
		equal(t, "as a new one", b.take(rule, "client", 3), b.take(rule, "other", 3))
	})
}

// apart is about checks that are decided by themselves.
func apart(t *testing.T, open Open) {
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
				equal(t, "the others' refusal is not its own", d[1].Allowed, i < 3)
				equal(t, "its refusal is not theirs", d[2].Allowed, i < 2)
				equal(t, "big has left", d[0].Remaining, 5-min(i+1, 2))
				equal(t, "it has left", d[1].Remaining, max(0, 2-i))
			}
			for range 4 {
				d := b.takeAll(
					store.Check{Rule: alone, Key: "k", Cost: 1, Independent: true},
					store.Check{Rule: big, Key: "k", Cost: 1})
				equal(t, "refused by itself", d[0].Allowed, false)
			}
			equal(t, "charged beside a refusal apart", b.take(big, "k", 1).Allowed, false)
		})
	}
}

// charged takes a cost, which must pass, and returns what corrects it.
func (b *bench) charged(rule *store.Rule, cost int64) store.Adjustment {
	b.Helper()
	c := store.Check{Rule: rule, Key: "client", Cost: cost}
	d := b.takeNamed(c)
	if !d.Allowed {
		b.Fatalf("cost %d: %s", cost, describe(d))
	}
	return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Override: d.Override}
}

// correct settles a correction, and waits until it has taken effect: until a slot that is
// given back behind it is free.
func (b *bench) correct(c store.Adjustment, delta int64) {
	b.Helper()
	c.Delta = delta
	marker := store.Check{Rule: Rule(b, "marker", "concurrency", algorithms.Limit{Events: 1}), Key: c.Key, Cost: 1}
	marker.Hold = Hold(marker.Rule)
	equal(b, "marker", b.takeNamed(marker).Allowed, true)
	b.store.Adjust(c, store.Adjustment{Check: marker, Delta: -1})
	b.await(marker.Rule, 1)
}
