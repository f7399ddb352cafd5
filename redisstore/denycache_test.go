package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// ask takes a decision and describes it.
func ask(t testing.TB, s store.Store, checks ...store.Check) []algorithms.Decision {
	t.Helper()
	decisions := make([]algorithms.Decision, len(checks))
	if err := s.Take(context.Background(), checks, decisions); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// remembers returns the options of a store that remembers refusals for long.
func remembers(server *redistest.Server) redisstore.Options {
	o := at(server)
	o.DenyCache = time.Minute
	return o
}

// TestRememberedWaitsAreRight: whatever is remembered of a key, the decision on a cost is the one
// that Redis would make, and no wait is too short.
func TestRememberedWaitsAreRight(t *testing.T) {
	t.Parallel()
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // its refusals are not remembered
		}
		t.Run(name, func(t *testing.T) {
			server := redistest.Shared(t)
			s, setNow := openWithClock(t, server) // a store that remembers nothing
			remembering := clocked(t, server, remembers(server))
			begun := time.Now()
			rule := storetest.Rule(t, "z", name, storetest.Limit(name, 10, 1000*time.Hour))
			for i, cost := range []int64{4, 3, 2, 1} {
				setNow(storetest.Start + int64(i)*60_000_000)
				take(t, s, rule, "client", cost)
			}
			for _, costs := range [][]int64{{1, 2, 9, 10, 11, 1}, {5, 1, 5, 12, 11, 10}, {11, 10, 1, 9}} {
				for _, cost := range costs {
					for range 2 {
						want, got := take(t, s, rule, "client", cost), take(t, remembering, rule, "client", cost)
						// The test's clock stands still, and the clock of the deny cache does
						// not.
						d := want.RetryAfter - got.RetryAfter
						if never := got.RetryAfter == algorithms.Never; got.Allowed || never != (want.RetryAfter == algorithms.Never) || d < 0 || d > time.Since(begun) {
							t.Errorf("of %v, cost %d: told to wait for %v, want %v", costs, cost, got.RetryAfter, want.RetryAfter)
						}
					}
				}
			}
		})
	}
}

// TestRememberedOnlyWhereExact goes through everything that must be asked again.
func TestRememberedOnlyWhereExact(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, remembers(server))
	hour := func(burst int64) *store.Rule { // all of one rate, so that they share their states
		return storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: time.Hour, Burst: burst})
	}
	rule := hour(10)
	check := func(key string, cost int64) store.Check { return store.Check{Rule: rule, Key: key, Cost: cost} }
	asks := func(name string, want int, checks ...store.Check) []algorithms.Decision {
		t.Helper()
		before := s.Stats().DenyHits
		d := ask(t, s, checks...)
		if asked := s.Stats().DenyHits == before; asked != (want > 0) {
			t.Errorf("%s: Redis was asked: %v", name, asked)
		}
		return d
	}
	asks("8 of 10", 1, check("a", 8))
	asks("too much", 1, check("a", 5))
	asks("too much again", 0, check("a", 5))
	asks("even more, which is to wait for longer", 1, check("a", 6))
	asks("the same again", 0, check("a", 6))
	asks("more than there ever is", 0, check("a", 11))
	if d := asks("less", 1, check("a", 1)); !d[0].Allowed {
		t.Errorf("there was room for one: %+v", d[0])
	}
	if d := asks("the same after a charge", 1, check("a", 6)); d[0].Remaining != 1 || d[0].RetryAfter < 29*time.Minute {
		t.Errorf("too much for what is left: %+v", d[0])
	}
	asks("peek", 1, check("a", 0))
	asks("another key", 1, check("b", 5))
	asks("the last", 1, check("a", 1))
	if d := asks("nothing is left, as Redis said with the last", 0, check("a", 1)); d[0].Allowed || d[0].RetryAfter <= 0 {
		t.Errorf("remembered %+v", d[0])
	}

	raised := store.Check{Rule: hour(12), Key: "a", Cost: 1}
	charged := asks("another definition", 1, raised)[0]
	if !charged.Allowed {
		t.Errorf("the limit was raised: %+v", charged)
	}
	if d := asks("what was charged under the other definition", 1, check("a", 1)); d[0].Allowed || d[0].RetryAfter < 6*time.Minute {
		t.Errorf("the wait is that before the charge: %+v", d[0])
	}
	asks("the same again under the first", 0, check("a", 1))
	s.Adjust(store.Adjustment{Check: raised, At: charged.Booked(), Turn: charged.Turn(), Delta: 10})
	s.Flush()
	if d := asks("after a late cost", 1, check("a", 1)); d[0].RetryAfter < time.Hour {
		t.Errorf("the wait is that before the late cost: %+v", d[0])
	}
	raised.Cost = 5
	asks("too much for the other definition", 1, raised)
	asks("and again", 0, raised)
	if err := s.Reset(context.Background(), rule, "a"); err != nil {
		t.Fatal(err)
	}
	if d := asks("after a reset", 1, check("a", 1)); !d[0].Allowed {
		t.Errorf("it was reset: %+v", d[0])
	}
	if d := asks("by any definition", 1, raised); !d[0].Allowed {
		t.Errorf("it was reset for the other definition: %+v", d[0])
	}

	asks("all at once", 1, check("c", 10))
	asks("refused for the sake of another", 0, check("c", 1), check("d", 1))
	if d := asks("the other is not charged, and not refused", 1, check("d", 10)); !d[0].Allowed {
		t.Errorf("was charged: %+v", d[0])
	}
	apart := check("e", 1)
	apart.Independent = true
	if d := asks("one that stands apart is asked", 1, check("c", 1), apart); d[0].Allowed || !d[1].Allowed || d[1].Remaining != 9 {
		t.Errorf("got %+v", d)
	}

	slots := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 1, Lease: time.Minute})
	slot := func() store.Check {
		return store.Check{Rule: slots, Key: "a", Cost: 1, LeaseID: storetest.LeaseID(slots)}
	}
	asks("the only slot", 1, slot())
	asks("none left", 1, slot())
	asks("a slot may come back at any time", 1, slot())
}

// TestPeeksAskRedis: Redis answers a peek, whatever is remembered of the key, and the answer is
// not remembered.
func TestPeeksAskRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, remembers(server))
	other := open(t, asking(server))
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 1, Window: 1000 * time.Hour})
	check := store.Check{Rule: rule, Key: "client", Cost: 1}
	peek := check
	peek.Peek = true
	ask(t, other, check)
	if d := ask(t, s, peek)[0]; d.Allowed {
		t.Errorf("peeked at a key that is used up: %+v", d)
	}
	reset := func() {
		if err := other.Reset(context.Background(), rule, "client"); err != nil {
			t.Fatal(err)
		}
	}
	reset()
	if d := ask(t, s, check)[0]; !d.Allowed {
		t.Errorf("after a reset elsewhere: %+v, although only a peek was refused before", d)
	}
	ask(t, s, check)
	reset()
	if d := ask(t, s, check)[0]; d.Allowed {
		t.Errorf("after another reset: %+v, although a refusal is remembered", d)
	}
	if d := ask(t, s, peek)[0]; !d.Allowed || d.Remaining != 1 {
		t.Errorf("peeked after a reset: %+v", d)
	}
}

// TestNothingIsRemembered: without the cache Redis is asked each time, and nothing touches the
// cache, which would panic.
func TestNothingIsRemembered(t *testing.T) {
	t.Parallel()
	s := open(t, asking(redistest.Shared(t)))
	ctx, check := context.Background(), banning(t, 5)
	ask(t, s, check)
	for i := 1; i <= 10; i++ {
		if d := ask(t, s, check)[0]; d.Allowed || d.Banned != (i >= 5) {
			t.Fatalf("refusal %d: %+v", i, d)
		}
	}
	if err := errors.Join(s.Unban(ctx, check.Rule, check.Key), s.Reset(ctx, check.Rule, check.Key)); err != nil {
		t.Fatal(err)
	}
	d := ask(t, s, check)[0]
	s.Adjust(store.Adjustment{Check: check, At: d.Booked(), Turn: d.Turn(), Delta: -check.Cost})
	s.Flush()
	if d := ask(t, s, check)[0]; !d.Allowed {
		t.Errorf("after it was given back: %+v", d)
	}
	if stats := s.Stats(); stats.DenyHits != 0 {
		t.Errorf("%+v", stats)
	}
}

// BenchmarkRefusal measures a refusal without Redis.
func BenchmarkRefusal(b *testing.B) {
	s := open(b, remembers(redistest.Shared(b)))
	rule := storetest.Rule(b, "z", "token_bucket", algorithms.Limit{Events: 1, Window: time.Hour})
	check := []store.Check{{Rule: rule, Key: "203.0.113.7", Cost: 1}}
	ask(b, s, check...)
	ask(b, s, check...)
	b.ReportAllocs()
	var d [1]algorithms.Decision
	for b.Loop() {
		if err := s.Take(context.Background(), check, d[:]); err != nil || d[0].Allowed {
			b.Fatal(err, d[0])
		}
	}
}
