package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// adjustments tests charges that change afterwards.
func adjustments(b *bench, name string) {
	b.notForSlots(name)
	for _, c := range []struct {
		what   string
		cost   int64
		deltas []int64
		left   int64
	}{
		{"all of it comes back", 10, []int64{-10}, 10},
		{"a delta of 0 changes nothing", 4, []int64{0}, 6},
		{"some of it comes back, twice", 7, []int64{-4, -1}, 8},
		{"never more than was charged", 2, []int64{-100}, 10},
		{"a cost is known late", 1, []int64{6}, 3},
		{"and is more than there is", 7, []int64{30}, 0},
	} {
		b, rule := b.another(), ten(b, name)
		charge := b.charged(rule, c.cost)
		for _, delta := range c.deltas {
			b.adjust(charge, delta)
		}
		equal(b, c.what+": left", b.take(rule, "client", 0).Remaining, c.left)
		if c.left == 10 {
			equal(b, c.what+": like a new key", b.take(rule, "client", 3), b.take(rule, "other", 3))
		}
		if c.left == 0 {
			b.wait(b.take(rule, "client", 1).RetryAfter - time.Microsecond)
			equal(b, c.what+": early", b.take(rule, "client", 1).RetryAfter, time.Microsecond)
			b.wait(time.Microsecond)
			equal(b, c.what+": then", b.take(rule, "client", 1).Allowed, true)
		}
	}
	rule := ten(b, name)
	b.adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 5}, At: b.now, Turn: b.now}, -5)
	equal(b, "a refund of what was never charged", b.admitted(rule, "client", 20), 10)
}

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

// kinds are what limits of an algorithm differ in, beside the plain ones.
var kinds = map[string][]func(l *algorithms.Limit){
	"fixed_window": {
		func(l *algorithms.Limit) { l.Align = algorithms.AlignFirstRequest },
		func(l *algorithms.Limit) { l.Window, l.Calendar = 0, algorithms.Day },
	},
	"token_bucket": {func(l *algorithms.Limit) { l.Refill = algorithms.RefillInterval }},
	"leaky_bucket": {func(l *algorithms.Limit) { l.Mode = algorithms.ModeQueue }},
}

// Kinds returns a rule for each kind of an algorithm.
func Kinds(t testing.TB, algorithm string, events int64, window time.Duration) []*store.Rule {
	rules := []*store.Rule{Rule(t, "zone", algorithm, Limit(algorithm, events, window))}
	for _, change := range kinds[algorithm] {
		l := Limit(algorithm, events, window)
		change(&l)
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

// slots tests giving back leases.
func slots(b *bench) {
	rule := Rule(b, "zone", "concurrency", algorithms.Limit{Events: 10})
	held := []store.Adjustment{b.charged(rule, 1), b.charged(rule, 1), b.charged(rule, 7)}
	refused := store.Check{Rule: rule, Key: "client", Cost: 7, LeaseID: LeaseID(rule)}
	equal(b, "another seven", b.takeNamed(refused).Allowed, false)
	b.store.Adjust(store.Adjustment{Check: refused, Delta: -7}) // nothing comes back, because nothing was held
	b.store.Adjust(held[0], held[0], held[0])                   // one slot, however often it is given back
	b.await(rule, 2)
	equal(b, "two are free", b.admitted(rule, "client", 3), 2)
	b.store.Adjust(held[1:]...)
	b.await(rule, 8)

	// Each slot of a request is an entry in Redis, so the slots of one request are bounded.
	const most, many = algorithms.MaxSlotCost, algorithms.MaxSlots
	rule = Rule(b, "slots", "concurrency", algorithms.Limit{Events: many})
	equal(b, "more than a thousand", b.take(rule, "key", most+1).RetryAfter, algorithms.Never)
	equal(b, "a million", b.take(rule, "key", many).RetryAfter, algorithms.Never)
	equal(b, "left", b.take(rule, "key", most).Remaining, many-most)
}

// takeNamed takes a check with the LeaseID that it has.
func (b *bench) takeNamed(c store.Check) algorithms.Decision {
	b.Helper()
	decisions := make([]algorithms.Decision, 1)
	b.ok(b.store.Take(b.Context(), []store.Check{c}, decisions))
	return decisions[0]
}

// await waits until that much remains, because Adjust may take effect a moment later.
func (b *bench) await(rule *store.Rule, remaining int64) {
	b.Helper()
	patient.UntilEqual(b, "what is left", func() int64 { return b.take(rule, "client", 0).Remaining }, remaining)
}

// turns tests giving back turns in a queue: only the last one comes back, once, and Done reports whether it has.
func turns(b *bench) {
	limit := algorithms.Limit{Events: 10, Window: time.Second, Burst: 5, Mode: algorithms.ModeQueue}
	rule := Rule(b, "zone", "leaky_bucket", limit)
	var turns []store.Adjustment
	done := make(chan bool, 1)
	for i := range 4 {
		turns = append(turns, b.charged(rule, 1))
		turns[i].Done = func(changed bool) { done <- changed }
	}
	for i, turn := range []struct {
		number int
		back   bool
	}{{2, false}, {3, true}, {3, false}, {1, false}, {2, true}, {1, true}, {0, true}, {0, false}} {
		b.store.Adjust(turns[turn.number])
		select {
		case back := <-done:
			equal(b, fmt.Sprintf("turn %d in step %d is back", turn.number, i), back, turn.back)
		case <-time.After(patient.Patience):
			b.Fatalf("step %d: Done was not called", i)
		}
	}
	equal(b, "the next one goes at once", b.take(rule, "client", 1).Delay, 0)
}
