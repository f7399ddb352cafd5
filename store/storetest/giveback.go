package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// giveBack tests giving back leases, and turns in a queue.
func giveBack(t *testing.T, open Open) {
	t.Run("Slots", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 3})
		var held []store.Adjustment
		for range 3 {
			c := store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: LeaseID(rule)}
			b.takeNamed(c)
			held = append(held, store.Adjustment{Check: c, Delta: -1})
		}
		refused := store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: LeaseID(rule)}
		equal(t, "a fourth", b.takeNamed(refused).Allowed, false)
		b.store.Adjust(store.Adjustment{Check: refused, Delta: -1}) // nothing comes back, because nothing was held
		b.store.Adjust(held[0], held[0], held[0])                   // one slot, however often it is given back
		b.await(rule, 1)
		equal(t, "one is free", b.admitted(rule, "client", 3), 1)
		b.store.Adjust(held[1:]...)
		b.await(rule, 2)
	})

	t.Run("SeveralSlotsAtOnce", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 10})
		big := store.Check{Rule: rule, Key: "client", Cost: 7, LeaseID: LeaseID(rule)}
		equal(t, "left", b.takeNamed(big).Remaining, 3)
		equal(t, "another seven", b.take(rule, "client", 7).Allowed, false)
		b.store.Adjust(store.Adjustment{Check: big, Delta: -7})
		b.await(rule, 10)
	})

	// Each slot of a request is an entry in Redis, so the slots of one request are bounded.
	t.Run("AThousandSlotsAtOnce", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "slots", "concurrency", algorithms.Limit{Events: algorithms.MaxSlots})
		equal(t, "more", b.take(rule, "key", algorithms.MaxSlotCost+1).RetryAfter, algorithms.Never)
		equal(t, "a million", b.take(rule, "key", algorithms.MaxSlots).RetryAfter, algorithms.Never)
		equal(t, "left", b.take(rule, "key", algorithms.MaxSlotCost).Remaining, algorithms.MaxSlots-algorithms.MaxSlotCost)
	})

	t.Run("LeasesEnd", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 2, Lease: 10 * time.Minute})
		b.take(rule, "client", 1)
		b.wait(time.Minute)
		b.take(rule, "client", 1)
		d := b.take(rule, "client", 1)
		equal(t, "until the first lease ends", d.RetryAfter, 9*time.Minute)
		b.wait(d.RetryAfter)
		equal(t, "a slot of a holder that crashed", b.admitted(rule, "client", 5), 1)
	})

	t.Run("TheLastTurn", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "leaky_bucket", algorithms.Limit{Events: 10, Window: time.Second, Burst: 5, Mode: algorithms.ModeQueue})
		turn := func() (store.Adjustment, time.Duration) {
			b.Helper()
			c := store.Check{Rule: rule, Key: "client", Cost: 1}
			d := b.takeNamed(c)
			return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -1}, d.Delay
		}
		turn()
		second, _ := turn()
		third, wait := turn()
		equal(t, "third", wait, 200*time.Millisecond)
		b.store.Adjust(third, third) // once, however often
		b.await(rule, 3)
		_, wait = turn()
		equal(t, "the next one gets the third turn", wait, 200*time.Millisecond)
		b.store.Adjust(second) // ignored: the requests behind it know when to leave
		_, wait = turn()
		equal(t, "behind all others", wait, 300*time.Millisecond)
	})

	// Done reports whether a turn has come back.
	t.Run("DoneOfTurns", func(t *testing.T) {
		b := start(t, open)
		rule := Rule(t, "zone", "leaky_bucket", algorithms.Limit{Events: 10, Window: time.Second, Burst: 5, Mode: algorithms.ModeQueue})
		var turns []store.Adjustment
		done := make(chan bool, 1)
		for range 4 {
			c := store.Check{Rule: rule, Key: "client", Cost: 1}
			d := b.takeNamed(c)
			turns = append(turns, store.Adjustment{
				Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -1, Done: func(changed bool) { done <- changed },
			})
		}
		for i, turn := range []struct {
			number int
			back   bool
		}{{2, false}, {3, true}, {3, false}, {1, false}, {2, true}, {1, true}, {0, true}, {0, false}} {
			b.store.Adjust(turns[turn.number])
			select {
			case back := <-done:
				equal(t, fmt.Sprintf("turn %d in step %d is back", turn.number, i), back, turn.back)
			case <-time.After(patient.Patience):
				t.Fatalf("step %d: Done was not called", i)
			}
		}
	})
}

// takeNamed takes a check with the LeaseID that it has.
func (b *bench) takeNamed(c store.Check) algorithms.Decision {
	b.Helper()
	decisions := make([]algorithms.Decision, 1)
	if err := b.store.Take(b.Context(), []store.Check{c}, decisions); err != nil {
		b.Fatalf("take: %v", err)
	}
	return decisions[0]
}

// await waits until that much remains, because Adjust may take effect a moment later.
func (b *bench) await(rule *store.Rule, remaining int64) {
	b.Helper()
	patient.UntilEqual(b, "what is left", func() int64 { return b.take(rule, "client", 0).Remaining }, remaining)
}
