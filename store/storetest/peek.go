package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peeks tests checks that ask how a request would be decided, and change nothing.
func peeks(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			t.Run("ChangesNothing", func(t *testing.T) { peekChangesNothing(t, open, name) })
			t.Run("Bans", func(t *testing.T) { peekBansNobody(t, open, name) })
			t.Run("Together", func(t *testing.T) { peekTogether(t, open, name) })
			t.Run("Overrides", func(t *testing.T) { peekOverrides(t, open, name) })
			if name == "leaky_bucket" {
				t.Run("Delay", func(t *testing.T) { peekKnowsTheDelay(t, open) })
			}
		})
	}
}

// peek asks how one check would be decided.
func (b *bench) peek(rule *store.Rule, key string, cost int64, rules *store.KeyRules) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost, KeyRules: rules, Peek: true})[0]
}

// peekChangesNothing: a peek at a cost that would pass returns what is left, and a peek at one
// that would be refused returns the refusal. Peeks leave all the room there is.
func peekChangesNothing(t *testing.T, open Open, name string) {
	b, rule := start(t, open), Rule(t, "zone", name, Limit(name, 10, time.Minute))
	equal(t, "a key that never came", b.peek(rule, "client", 10, nil), algorithms.Decision{Allowed: true, Quota: 10, Remaining: 10})
	b.take(rule, "client", 3)
	left := b.take(rule, "client", 0)
	for _, cost := range []int64{0, 1, 7} {
		equal(t, "would pass", b.peek(rule, "client", cost, nil), left)
	}
	for _, cost := range []int64{8, 10, 11} {
		equal(t, "would be refused", b.peek(rule, "client", cost, nil), b.take(rule, "client", cost))
	}
	equal(t, "left after that", b.take(rule, "client", 0), left)
	equal(t, "all that is left", b.take(rule, "client", 7).Allowed, true)
	equal(t, "nothing is left", b.peek(rule, "client", 1, nil), b.take(rule, "client", 1))
}

// peekKnowsTheDelay: a peek at a queue says for how long a request would be held.
func peekKnowsTheDelay(t *testing.T, open Open) {
	b, rule := start(t, open), Rule(t, "zone", "leaky_bucket", algorithms.Limit{Events: 1, Window: 4 * time.Second, Burst: 5, Mode: algorithms.ModeQueue})
	for i := range 5 {
		peeked := b.peek(rule, "client", 1, nil)
		equal(t, "a peek", peeked.Delay, time.Duration(i)*4*time.Second)
		equal(t, "what is left", peeked.Remaining, int64(5-i))
		equal(t, "the request", b.take(rule, "client", 1).Delay, peeked.Delay)
	}
	equal(t, "a full queue", b.peek(rule, "client", 1, nil), b.take(rule, "client", 1))
}

// peekBansNobody: peeks that are refused do not count towards a ban.
func peekBansNobody(t *testing.T, open Open, name string) {
	b, rule := start(t, open), Rule(t, "zone", name, Limit(name, 1, time.Minute))
	with := &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 2, Within: time.Minute}}
	equal(t, "the first", b.takeWith(rule, "client", 1, with).Allowed, true)
	refused := b.peek(rule, "client", 1, with)
	for range 5 {
		equal(t, "peeked at", b.peek(rule, "client", 1, with), refused)
	}
	equal(t, "refused for the first time", b.takeWith(rule, "client", 1, with), refused)
	equal(t, "between the two", b.peek(rule, "client", 1, with), refused)
	equal(t, "refused for the second time", b.takeWith(rule, "client", 1, with).BanBegins, true)
	d := b.peek(rule, "client", 1, with)
	equal(t, "banned", d, b.takeWith(rule, "client", 1, with))
	if !d.Banned || d.BanBegins || d.RetryAfter != time.Hour {
		t.Fatalf("banned: %s", describe(d))
	}
}

// peekTogether: a peek and the other checks of its call do not affect each other.
func peekTogether(t *testing.T, open Open, name string) {
	b := start(t, open)
	wide, narrow := Rule(t, "wide", name, Limit(name, 10, time.Minute)), Rule(t, "narrow", name, Limit(name, 2, time.Minute))
	both := func(cost, peeked int64) []algorithms.Decision {
		t.Helper()
		return b.takeAll(
			store.Check{Rule: wide, Key: "client", Cost: cost},
			store.Check{Rule: narrow, Key: "client", Cost: peeked, Peek: true})
	}
	d := both(4, 3)
	if !d[0].Allowed || d[0].Remaining != 6 || d[1].Allowed {
		t.Fatalf("a peek is refused: %+v", d)
	}
	d = both(7, 2)
	if d[0].Allowed || !d[1].Allowed || d[1].Remaining != 2 {
		t.Fatalf("a check is refused: %+v", d)
	}
	d = both(6, 2)
	if !d[0].Allowed || d[0].Remaining != 0 || !d[1].Allowed || d[1].Remaining != 2 {
		t.Fatalf("both pass: %+v", d)
	}
}

// peekOverrides: overrides hold for peeks, too.
func peekOverrides(t *testing.T, open Open, name string) {
	b := start(t, open)
	overrider := b.overrider(t)
	rule, with := Rule(t, "zone", name, Limit(name, 2, time.Minute)), &store.KeyRules{Overrides: true}
	for _, override := range []store.Override{
		{Kind: store.KindExempt},
		{Kind: store.KindBanned},
		{Kind: store.KindBanned, For: time.Hour},
		{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 5}},
	} {
		if err := overrider.SetRule(context.Background(), rule, client, override); err != nil {
			t.Fatal(err)
		}
		for _, cost := range []int64{0, 1, 4, 6} {
			d := b.peek(rule, "client", cost, with)
			if d.Exempt != (override.Kind == store.KindExempt) || d.Banned != (override.Kind == store.KindBanned) ||
				(d.Override != "") != (override.Kind == store.KindLimit) {
				t.Fatalf("%+v, cost %d: %s", override, cost, describe(d))
			}
			if override.Kind == store.KindLimit && (d.Allowed != (cost <= 5) || d.Remaining != 5) {
				t.Fatalf("%+v, cost %d: %s", override, cost, describe(d))
			}
		}
	}
}
