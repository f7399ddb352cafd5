package storetest

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peek asks how one check would be decided, without any change.
func (b *bench) peek(rule *store.Rule, key string, cost int64, rules *store.KeyRules) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost, KeyRules: rules, Peek: true})[0]
}

// peekChangesNothing: a peek at a cost that would pass returns what is left, as a cost of 0 does. A peek at one
// that would be refused returns the refusal. All the room there is stays.
func peekChangesNothing(b *bench, name string) {
	rule, fresh := ten(b, name), algorithms.Decision{Allowed: true, Quota: 10, Remaining: 10}
	equal(b, "a peek at a key that never came", b.peek(rule, "client", 10, nil), fresh)
	equal(b, "its cost of 0", b.take(rule, "client", 0), fresh)
	b.take(rule, "client", 3)
	left := b.take(rule, "client", 0)
	for _, cost := range []int64{0, 1, 7} {
		equal(b, "would pass", b.peek(rule, "client", cost, nil), left)
	}
	for _, cost := range []int64{8, 10, 11} {
		equal(b, "would be refused", b.peek(rule, "client", cost, nil), b.take(rule, "client", cost))
	}
	equal(b, "left after that", b.take(rule, "client", 0), left)
	equal(b, "all that is left", b.take(rule, "client", 7).Allowed, true)
	equal(b, "nothing is left", b.peek(rule, "client", 1, nil), b.take(rule, "client", 1))
	equal(b, "for a cost of 0", b.take(rule, "client", 0).Allowed, true)
}

// peekKnowsTheDelay: a peek at a queue says for how long a request would be held.
func peekKnowsTheDelay(b *bench) {
	limit := algorithms.Limit{Events: 1, Window: 4 * time.Second, Burst: 5, Mode: algorithms.ModeQueue}
	rule := Rule(b, "zone", "leaky_bucket", limit)
	for i := range 5 {
		peeked := b.peek(rule, "client", 1, nil)
		equal(b, "a peek", peeked.Delay, time.Duration(i)*4*time.Second)
		equal(b, "what is left", peeked.Remaining, int64(5-i))
		equal(b, "the request", b.take(rule, "client", 1).Delay, peeked.Delay)
	}
	equal(b, "a full queue", b.peek(rule, "client", 1, nil), b.take(rule, "client", 1))
}

// peekBansNobody: peeks that are refused do not count towards a ban.
func peekBansNobody(b *bench, name string) {
	rule := Rule(b, "zone", name, Limit(name, 1, time.Minute))
	with := &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 2, Within: time.Minute}}
	equal(b, "the first", b.takeWith(rule, "client", 1, with).Allowed, true)
	refused := b.peek(rule, "client", 1, with)
	for range 5 {
		equal(b, "peeked at", b.peek(rule, "client", 1, with), refused)
	}
	equal(b, "refused for the first time", b.takeWith(rule, "client", 1, with), refused)
	equal(b, "between the two", b.peek(rule, "client", 1, with), refused)
	equal(b, "refused for the second time", b.takeWith(rule, "client", 1, with).BanBegins, true)
	d := b.peek(rule, "client", 1, with)
	equal(b, "banned", d, b.takeWith(rule, "client", 1, with))
	if !d.Banned || d.BanBegins || d.RetryAfter != time.Hour {
		b.Fatalf("banned: %+v", d)
	}
}

// peekTogether: a peek and the other checks of its call do not affect each other.
func peekTogether(b *bench, name string) {
	wide, narrow := ten(b, name), Rule(b, "narrow", name, Limit(name, 2, time.Minute))
	for _, c := range []struct {
		cost, peeked int64
		allowed      [2]bool
		left         int64 // of wide
	}{
		{4, 3, [2]bool{true, false}, 6},
		{7, 2, [2]bool{false, true}, 6},
		{6, 2, [2]bool{true, true}, 0},
	} {
		d := b.takeAll(
			store.Check{Rule: wide, Key: "client", Cost: c.cost},
			store.Check{Rule: narrow, Key: "client", Cost: c.peeked, Peek: true})
		if got := [2]bool{d[0].Allowed, d[1].Allowed}; got != c.allowed || d[0].Remaining != c.left || d[1].Remaining != 2 {
			b.Fatalf("%+v: %+v", c, d)
		}
	}
}

// peekOverrides: overrides hold for peeks, too.
func peekOverrides(b *bench, name string) {
	r := b.ruled(Rule(b, "zone", name, Limit(name, 2, time.Minute)), nil)
	for _, override := range []store.Override{
		{Kind: store.KindExempt},
		{Kind: store.KindBanned},
		{Kind: store.KindBanned, For: time.Hour},
		{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 5}},
	} {
		r.set(client, override)
		for _, cost := range []int64{0, 1, 4, 6} {
			d := b.peek(r.rule, "client", cost, r.with)
			limited := override.Kind == store.KindLimit
			if d.Exempt != (override.Kind == store.KindExempt) || d.Banned != (override.Kind == store.KindBanned) ||
				(d.Override != "") != limited || limited && (d.Allowed != (cost <= 5) || d.Remaining != 5) {
				b.Fatalf("%+v, cost %d: %+v", override, cost, d)
			}
		}
	}
}
