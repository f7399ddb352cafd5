package outbox_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// refund gives one event of a limit back.
func refund(t *testing.T, algorithm string) store.Adjustment {
	rule := storetest.Rule(t, "zone", algorithm, storetest.Limit(algorithm, 10, time.Minute))
	return store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: storetest.LeaseID(rule)}, Delta: -1}
}

// TestBounds: batches are bounded, and the queue is, too. What is too much is dropped, and counted
// unless it is a lease, which ends by itself.
func TestBounds(t *testing.T) {
	const most = 100_000
	for name, lost := range map[string]uint64{"token_bucket": 7, "concurrency": 0} {
		o := outbox.New()
		one := refund(t, name)
		for range most + 7 {
			o.Add(one)
		}
		if n, _ := o.Lost(); o.Len() != most || n != lost {
			t.Errorf("%s: %d wait and %d are lost, want %d and %d", name, o.Len(), n, most, lost)
		}
		if n := len(o.Next()); n != outbox.BatchSize {
			t.Errorf("%s: a batch has %d, want %d", name, n, outbox.BatchSize)
		}
		if o.DropAll(); o.Len() != 0 {
			t.Errorf("%s: %d wait after all were dropped", name, o.Len())
		}
	}
}

// TestRetry: what failed is first in the next try, if it still matters: a refund until its charge
// would have come back by itself, a lease forever.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outbox.New()
		o.Add(refund(t, "fixed_window"), refund(t, "concurrency"), refund(t, "token_bucket"))
		failed := o.Next()
		o.Failed(failed[:2], false)
		o.Drop(errors.New("in doubt"), failed[2])
		o.Add(refund(t, "leaky_bucket"))
		names := func() (names []string) {
			o.Retry()
			for _, a := range o.Next() {
				names = append(names, a.Rule.Algorithm().Name())
			}
			return names
		}
		if got := names(); len(got) != 3 || got[0] != "fixed_window" || got[1] != "concurrency" || got[2] != "leaky_bucket" {
			t.Errorf("the next batch is %v", got)
		}
		o.Failed(failed[:2], true)
		time.Sleep(2 * time.Minute)
		if got := names(); len(got) != 1 || got[0] != "concurrency" {
			t.Errorf("two minutes later the next batch is %v", got)
		}
		if n, cause := o.Lost(); n != 1 || cause == nil {
			t.Errorf("%d are lost: %v", n, cause)
		}
	})
}

// TestAbsent: what a lost call may have got and is not there is given back again, after pauses that double, for half
// a minute. It does not count as waiting. Anything else is given back once.
func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, begun := outbox.New(), time.Now()
		o.Add(refund(t, "concurrency"))
		o.AddLost(refund(t, "concurrency"))
		var given []time.Duration
		for time.Since(begun) < time.Hour {
			for _, a := range o.Next() {
				given = append(given, time.Since(begun))
				o.Absent(&a)
			}
			if o.Len() > 0 {
				t.Fatalf("%d wait after %v", o.Len(), time.Since(begun))
			}
			time.Sleep(store.RenewInterval)
			if waits := o.Retry(); waits != (o.Len() > 0) {
				t.Fatalf("waits: %v, with %d", waits, o.Len())
			}
		}
		const step = store.RenewInterval
		if want := []time.Duration{0, 0, step, 3 * step, 7 * step, 15 * step, 31 * step, 63 * step, 127 * step}; !slices.Equal(given, want) {
			t.Errorf("given back after %v, want %v", given, want)
		}
	})
}
