package storetest

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// holds checks that a rule with a hold admits exactly what the limit allows when one process asks, whether the store
// charges ahead or not, and counts in the states of the limit without one.
func holds(b *bench, name string) {
	b.notForSlots(name)
	limit := per(100, time.Hour)
	plain := Rule(b, "z", name, limit)
	limit.Hold = algorithms.MaxHold
	rule := Rule(b, "z", name, limit)
	passed := 0
	for range 130 {
		if b.takeNamed(store.Check{Rule: rule, Key: "k", Cost: 1}).Allowed { // the time of the decision is not known exactly
			passed++
		}
	}
	equal(b, "admitted", passed, 100)
	equal(b, "admitted of another key", b.takeNamed(store.Check{Rule: rule, Key: "other", Cost: 1}).Allowed, true)
	if d := b.takeAll(store.Check{Rule: rule, Key: "other", Cost: 1, Peek: true})[0]; d.Remaining != 99 || d.Quota != 100 {
		b.Errorf("another key after one request: %+v", d)
	}
	equal(b, "admitted by the limit without a hold", b.admitted(plain, "k", 130), 0)
}
