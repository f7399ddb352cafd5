package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
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

// TestRefusalsAreRemembered: a client that keeps sending requests costs Redis hardly more calls
// than requests are admitted, and gets the decisions that Redis would make.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_log", "sliding_window_counter"} {
		t.Run(algorithm, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: time.Minute})
			other := open(t, redisstore.Options{Address: server.Addr(), DenyCache: -1})
			const events, window = 20, 500 * time.Millisecond
			rule := storetest.Rule(t, "z", algorithm, algorithms.Limit{Events: events, Window: window})
			check := store.Check{Rule: rule, Key: "client", Cost: 1}
			admitted, refused := 0, 0
			before := calls(t, server)
			compared := 0
			begin := time.Now()
			for admitted < 2*events || refused < 1000 { // until the whole limit has come back
				d := ask(t, s, check)[0]
				if d.Allowed {
					admitted++
					continue
				}
				if refused++; refused%200 == 0 {
					// Redis decides a moment later, so its wait is shorter, and the one that is
					// remembered is never too short.
					truth := ask(t, other, check)[0]
					compared++
					if truth.Allowed {
						admitted++
					} else if d.RetryAfter < truth.RetryAfter || d.Quota != truth.Quota {
						t.Fatalf("told %+v, Redis says %+v", d, truth)
					}
				}
			}
			took, asked := time.Since(begin), calls(t, server)-before-compared
			t.Logf("%d admitted, %d refused in %v, %d calls", admitted, refused, took, asked)
			if windows := 2 + int(took/window); admitted > windows*events { // the number of windows that the test may have touched
				t.Errorf("%d admitted in %v", admitted, took)
			}
			if asked > 2*admitted+5 {
				t.Errorf("%d calls for %d admitted and %d refused", asked, admitted, refused)
			}
		})
	}
}

// TestManyAskAnewAsOne: of the requests that come when a remembered refusal is over, one asks,
// and the others get its answer.
func TestManyAskAnewAsOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Second})
	before := calls(t, server)
	var admitted, refused atomic.Int64
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for admitted.Load() < 150 || refused.Load() < 1000 {
				if ask(t, s, store.Check{Rule: rule, Key: "client", Cost: 1})[0].Allowed {
					admitted.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	clients.Wait()
	asked := int64(calls(t, server) - before)
	t.Logf("%d admitted, %d refused, %d calls", admitted.Load(), refused.Load(), asked)
	if most := 2*admitted.Load() + 20; asked > most {
		t.Errorf("%d calls for %d admitted and %d refused, want at most %d", asked, admitted.Load(), refused.Load(), most)
	}
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
			server := redistest.Start(t)
			s, setNow := openWithClock(t, server) // a store that remembers nothing
			remembering, err := redisstore.NewWithClock(redisstore.Options{Address: server.Addr(), Timeout: 10 * time.Second, DenyCache: time.Minute}, clockKey)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closed(t, remembering) })
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
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: time.Minute})
	hour := func(burst int64) *store.Rule { // all of one rate, so that they share their states
		return storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: time.Hour, Burst: burst})
	}
	rule := hour(10)
	check := func(key string, cost int64) store.Check { return store.Check{Rule: rule, Key: key, Cost: cost} }
	asks := func(name string, want int, checks ...store.Check) []algorithms.Decision {
		t.Helper()
		before := calls(t, server)
		d := ask(t, s, checks...)
		if got := calls(t, server) - before; got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
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
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: time.Minute})
	other := open(t, redisstore.Options{Address: server.Addr(), DenyCache: -1})
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

// TestResetElsewhereCounts: a reset by another instance takes effect here after deny_cache, and not
// only when the remembered wait is over.
func TestResetElsewhereCounts(t *testing.T) {
	patient.BesideOthers(t)
	server := redistest.Start(t)
	const most = 300 * time.Millisecond
	here := open(t, redisstore.Options{Address: server.Addr(), DenyCache: most})
	there := open(t, redisstore.Options{Address: server.Addr()})
	check := store.Check{
		Rule: storetest.Rule(t, "z", "sliding_window_log", algorithms.Limit{Events: 1, Window: time.Hour}),
		Key:  "client", Cost: 1,
	}
	ask(t, here, check)
	if d := ask(t, here, check)[0]; d.Allowed {
		t.Fatalf("not refused: %+v", d)
	}
	if err := there.Reset(context.Background(), check.Rule, check.Key); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	patient.Until(t, "a request to be admitted", func() bool { return ask(t, here, check)[0].Allowed })
	t.Logf("admitted after %v", time.Since(begin))
	patient.Soon(t, "a request to be admitted", time.Since(begin), most+2*time.Second)
}

// TestRememberedIsBounded: a flood of refused keys takes bounded memory.
func TestRememberedIsBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: time.Minute})
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 0, Window: time.Hour})
	checks := make([]store.Check, store.MaxChecks)
	for n := range 100_000 / len(checks) {
		for i := range checks {
			checks[i] = store.Check{Rule: rule, Key: fmt.Sprint(n, ".", i), Cost: 1, Independent: true}
		}
		ask(t, s, checks...)
	}
	if n := s.Remembered(); n == 0 || n > refusals.MaxSize {
		t.Errorf("%d refusals are remembered, want at most %d", n, refusals.MaxSize)
	}
}

// TestNothingIsRemembered: without the cache Redis is asked each time, and nothing touches the
// cache, which would panic.
func TestNothingIsRemembered(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr(), DenyCache: -1})
	ctx, check := context.Background(), banning(t, 5)
	ask(t, s, check)
	before := calls(t, server)
	for i := 1; i <= 10; i++ {
		if d := ask(t, s, check)[0]; d.Allowed || d.Banned != (i >= 5) {
			t.Fatalf("refusal %d: %+v", i, d)
		}
	}
	if n := calls(t, server) - before; n != 10 {
		t.Errorf("%d calls for 10 refusals", n)
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
	server := redistest.Start(b)
	s := open(b, redisstore.Options{Address: server.Addr(), DenyCache: time.Minute})
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
