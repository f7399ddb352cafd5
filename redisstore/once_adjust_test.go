package redisstore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// onceCost is charged and then adjusted by less than half, so that an adjustment that is made
// twice shows.
const onceCost = 5

// onceAdjustments is how many adjustments make a test.
var onceAdjustments = deep.Steps(20, 50)

// onceDelta returns by how much charge n is adjusted. Some are refunds, some are late costs.
func onceDelta(n int) int64 { return []int64{-2, 3}[n%2] }

// TestAdjustedAtMostOnce loses the requests and replies of adjustments alone, each in one call
// with a slot that is given back.
func TestAdjustedAtMostOnce(t *testing.T) {
	deep.InTurn(t)
	for _, c := range []struct {
		fault faultproxy.Fault
		lost  lostCharge
		n     int // at least as many are in doubt
	}{
		{faultproxy.CutBefore, neverMade, 10},
		{faultproxy.CutAfter, alwaysMade, 10},
		{faultproxy.CutWithin, alwaysMade, 10},
		{faultproxy.SwallowReply, alwaysMade, 2},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			server := redistest.Start(t)
			proxy := faultproxy.Start(t, server.Addr())
			timeout := 10 * time.Second
			if c.fault == faultproxy.SwallowReply { // which is known when it ends
				timeout = time.Second
			}
			s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: timeout})
			w := newOnce(t, s)
			doubts := func() int { return int(s.Stats().Lost) }
			for n := 0; n < 200 || n < 600 && doubts() < c.n; n++ {
				late, charged := w.charge(store.Check{Rule: w.late, Key: strconv.Itoa(n), Cost: onceCost})
				slot, held := w.charge(store.Check{Rule: w.slots, Cost: 1, LeaseID: storetest.LeaseID(w.slots)})
				if doubts() < c.n {
					proxy.Inject(nth(int64(1+n/2%2), c.fault))
				}
				if held {
					slot.Delta = -1
					s.Adjust(slot)
				}
				if charged {
					w.adjust(late, onceDelta(n))
				}
				s.Flush()
				proxy.Inject(nil)
			}
			w.checkAdjustments(server, c.lost)
			if doubts() < c.n {
				t.Errorf("%d adjustments were in doubt, want %d for the test to say something", doubts(), c.n)
			}
			if held := server.Slots(s.Key(w.slots, "")); held != 0 {
				t.Errorf("%d slots are still held", held)
			}
		})
	}
}

// TestAdjustmentsArePatient: an adjustment has at least as long as a request, the timeout, and a second if that is
// less. What it has not heard of by then is given up.
func TestAdjustmentsArePatient(t *testing.T) {
	t.Parallel()
	for timeout, lost := range map[time.Duration]uint64{time.Minute: 0, 50 * time.Millisecond: 1} {
		server := redistest.Start(t)
		proxy := faultproxy.Start(t, server.Addr())
		s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: timeout})
		w := newOnce(t, s)
		var late store.Adjustment
		patient.Until(t, "a charge", func() (ok bool) {
			late, ok = w.charge(store.Check{Rule: w.late, Key: "key", Cost: onceCost})
			return ok
		})
		proxy.Delay(1200 * time.Millisecond) // both ways of a call are loopback, so this is its time
		w.adjust(late, -2)
		s.Flush()
		if got := s.Stats().Lost; got != lost {
			t.Errorf("with a timeout of %v, %d adjustments are given up, want %d", timeout, got, lost)
		}
	}
}

// nth has one script meet a fault: the first, or one after it, because the first may only find
// out whether Redis answers.
func nth(n int64, fault faultproxy.Fault) func(string) faultproxy.Fault {
	var scripts atomic.Int64
	return func(name string) faultproxy.Fault {
		if (name == "evalsha" || name == "eval") && scripts.Add(1) == n {
			return fault
		}
		return faultproxy.None
	}
}

// charge charges, and returns the adjustment of the charge.
func (w *once) charge(c store.Check) (charged store.Adjustment, ok bool) {
	decisions := make([]algorithms.Decision, 1)
	if err := w.store.Take(context.Background(), []store.Check{c}, decisions); err != nil {
		time.Sleep(20 * time.Millisecond) // until a client sends its next request
		return charged, false
	}
	d := &decisions[0]
	return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn()}, d.Allowed
}

// adjust adjusts a charge, once.
func (w *once) adjust(c store.Adjustment, delta int64) {
	c.Delta = delta
	w.store.Adjust(c)
	w.mu.Lock()
	w.adjusted[w.store.Key(c.Rule, c.Key)] = delta
	w.mu.Unlock()
}

// adjustments returns how many charges have been adjusted so far.
func (w *once) adjustments() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.adjusted)
}

// checkAdjustments compares the adjustments with what Redis has counted: none was made twice, and
// only those that were given up may be missing.
func (w *once) checkAdjustments(server *redistest.Server, lost lostCharge) {
	w.t.Helper()
	awaitAdjustments(w.t, w.store)
	var keys []string
	for key := range w.adjusted {
		keys = append(keys, key)
	}
	missing := 0
	for key, count := range charges(w.t, server, []onceAttempt{{keys: keys}}) {
		switch delta := w.adjusted[key]; int64(count) {
		case onceCost + delta:
		case onceCost:
			missing++
		default:
			w.t.Errorf("%s was charged %d and adjusted by %d: Redis counts %d", key, onceCost, delta, count)
		}
	}
	doubts := int(w.store.Stats().Lost)
	w.t.Logf("%d adjustments: %d in doubt, %d not carried out", len(keys), doubts, missing)
	least, most := lost.bounds(doubts)
	if made := doubts - missing; len(keys) < onceAdjustments || made < least || made > most {
		w.t.Errorf("of %d adjustments %d were in doubt and %d not carried out", len(keys), doubts, missing)
	}
}

// awaitAdjustments waits until no adjustment waits.
func awaitAdjustments(t *testing.T, s *redisstore.Store) {
	t.Helper()
	patient.Until(t, "adjustments to be carried out", func() bool {
		s.Flush()
		return s.Waiting() == 0
	})
}
