package storetest

import "github.com/seed-161337e5/caddyratelimit/algorithms"

import "github.com/seed-161337e5/caddyratelimit/store"

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
