package storetest

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
