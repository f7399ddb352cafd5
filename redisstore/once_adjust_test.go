//go:build deep

package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
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

// onceDelta returns by how much charge n is adjusted. Some are refunds, some are late costs.
func onceDelta(n int) int64 { return []int64{-2, 3}[n%2] }

// TestAdjustedAtMostOnce loses the requests and replies of adjustments, each in one call with a slot that is given
// back, and counts in Redis itself what was carried out: none was made twice, and only those that were given up may be
// missing. After a lost request they are missing, and after a lost reply they are not.
func TestAdjustedAtMostOnce(t *testing.T) {
	for _, c := range []struct {
		fault faultproxy.Fault
		made  bool // what is in doubt was carried out
		n     int  // at least as many are in doubt
	}{
		{faultproxy.CutBefore, false, 10},
		{faultproxy.CutAfter, true, 10},
		{faultproxy.CutWithin, true, 10},
		{faultproxy.SwallowReply, true, 2},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			server := redistest.Start(t)
			proxy := faultproxy.Start(t, server.Addr())
			timeout := 10 * time.Second
			if c.fault == faultproxy.SwallowReply { // which is known when it ends
				timeout = time.Second
			}
			w := newOnce(t, open(t, redisstore.Options{Address: proxy.Addr(), Timeout: timeout}))
			doubts := func() int { return int(w.store.Stats().Lost) }
			for n := 0; n < 200 || n < 600 && doubts() < c.n; n++ {
				late, charged := w.charge(store.Check{Rule: w.late, Key: strconv.Itoa(n), Cost: onceCost})
				slot, held := w.charge(store.Check{Rule: w.slots, Cost: 1, LeaseID: storetest.LeaseID(w.slots)})
				if doubts() < c.n {
					proxy.Inject(nth(int64(1+n/2%2), c.fault))
				}
				if held {
					slot.Delta = -1
					w.store.Adjust(slot)
				}
				if charged {
					w.adjust(late, onceDelta(n))
				}
				w.store.Flush()
				proxy.Inject(nil)
			}
			if missing := w.missing(server); doubts() < c.n || c.made && missing > 0 || !c.made && missing != doubts() {
				t.Errorf("%d adjustments were in doubt, want %d, and %d are missing", doubts(), c.n, missing)
			}
			if held := server.Slots(w.store.Key(w.slots, "")); held != 0 {
				t.Errorf("%d slots are still held", held)
			}
		})
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

// once is a client that adjusts what it was charged.
type once struct {
	t           *testing.T
	store       *redisstore.Store
	late, slots *store.Rule
	adjusted    map[string]int64 // by how much, by key in Redis
}

func newOnce(t *testing.T, s *redisstore.Store) *once {
	return &once{
		t: t, store: s, adjusted: make(map[string]int64),
		late: storetest.Rule(t, "late", "fixed_window",
			algorithms.Limit{Events: 1e6, Window: 24 * time.Hour, Align: algorithms.AlignFirstRequest}),
		slots: storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 6, Lease: 10 * time.Minute}),
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
	w.adjusted[w.store.Key(c.Rule, c.Key)] = delta
}

// missing returns how many adjustments were not carried out, once none waits. The test fails if any was made twice.
func (w *once) missing(server *redistest.Server) (missing int) {
	w.t.Helper()
	awaitAdjustments(w.t, w.store)
	for key, delta := range w.adjusted {
		switch count := counted(w.t, server, key); count {
		case onceCost + delta:
		case onceCost:
			missing++
		default:
			w.t.Errorf("%s was charged %d and adjusted by %d: Redis counts %d", key, onceCost, delta, count)
		}
	}
	return missing
}

// awaitAdjustments waits until no adjustment waits.
func awaitAdjustments(t *testing.T, s *redisstore.Store) {
	t.Helper()
	patient.Until(t, "adjustments to be carried out", func() bool {
		s.Flush()
		return s.Waiting() == 0
	})
}

// counted reads the count of a fixed window: the second of its three numbers.
func counted(t *testing.T, server *redistest.Server, key string) int64 {
	t.Helper()
	switch text, err := server.Admin().Get(context.Background(), key).Bytes(); {
	case errors.Is(err, redis.Nil):
		return 0
	case err != nil:
		t.Fatal(err)
		return 0
	default:
		return int64(binary.BigEndian.Uint64(text[8:16]))
	}
}
