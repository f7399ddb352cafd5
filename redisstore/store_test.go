package redisstore_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

// TestStore: a user with the rights that docs/redis.md names can do all that a store does. What can be read of the time is
// in a key here; TestInstances has Redis's own clock.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		server := redistest.Shared(t)
		options := least(t, server)
		grant(t, server, options.Username, "+scan")
		options.DenyCache = -1
		return withClock(t, server, options)
	})
}

// at returns the options of a store with a server and the test's prefix.
func at(server *redistest.Server) redisstore.Options {
	return redisstore.Options{Address: server.Addr(), KeyPrefix: server.Prefix()}
}

// asking returns those of a store that asks for each request.
func asking(server *redistest.Server) redisstore.Options {
	o := at(server)
	o.DenyCache = -1
	return o
}

// clockKey is where the test sets the time.
func clockKey(server *redistest.Server) string { return server.Prefix() + ":now" }

// openWithClock makes a store whose script reads the time that the test sets.
func openWithClock(t testing.TB, server *redistest.Server) (*redisstore.Store, func(int64)) {
	t.Helper()
	return withClock(t, server, asking(server))
}

func withClock(t testing.TB, server *redistest.Server, options redisstore.Options) (*redisstore.Store, func(int64)) {
	t.Helper()
	s := clocked(t, server, options)
	var today atomic.Int64
	s.SetToday(today.Load)
	setNow := func(now int64) {
		today.Store(now)
		if err := server.Admin().Set(context.Background(), clockKey(server), now, 0).Err(); err != nil { // t may be that of a fuzz target
			t.Fatal(err)
		}
	}
	setNow(storetest.Start)
	return s, setNow
}

// clocked makes a store whose script reads the time that the test sets.
func clocked(t testing.TB, server *redistest.Server, options redisstore.Options) *redisstore.Store {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	s, err := redisstore.NewWithClock(options, clockKey(server))
	must(t, err)
	t.Cleanup(func() { closed(t, s) })
	return s
}

// open makes a store as users have it.
func open(t testing.TB, options redisstore.Options) *redisstore.Store {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second // tests may be slow; the default is for gateways
	}
	s, err := redisstore.New(options)
	must(t, err)
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t testing.TB, s *redisstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestHeldUntilAllIsBack: giving back a part of a charge leaves the rest held, so it is still
// renewed. The statistics count all that is held.
func TestHeldUntilAllIsBack(t *testing.T) {
	t.Parallel()
	s := open(t, at(redistest.Shared(t)))
	slots := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 5})
	c := store.Check{Rule: slots, Key: "client", Cost: 3, LeaseID: storetest.LeaseID(slots)}
	ask(t, s, c)
	take(t, s, slots, "client", 1)
	for _, step := range []struct{ delta, held int64 }{{-1, 2}, {-2, 2}, {-3, 1}} {
		s.Adjust(store.Adjustment{Check: c, Delta: step.delta})
		if got := s.Stats(); got.InUse["slots"] != step.held || got.Breaker != store.BreakerClosed {
			t.Errorf("after %d of -3: %+v, want %d held", step.delta, got, step.held)
		}
	}
}

// ask takes a decision and describes it.
func ask(t testing.TB, s store.Store, checks ...store.Check) []algorithms.Decision {
	t.Helper()
	decisions := make([]algorithms.Decision, len(checks))
	must(t, s.Take(context.Background(), checks, decisions))
	return decisions
}

// TestRefusalsAreRemembered: a refusal is remembered, and a ban, until the key is charged, reset or unbanned. Redis answers
// a peek all the same. Package refusals has what else must be asked again.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	options := at(redistest.Shared(t))
	options.DenyCache = time.Minute
	s := open(t, options)
	asks := func(name string, asked bool, c store.Check) algorithms.Decision {
		t.Helper()
		before := s.Stats().DenyHits
		d := ask(t, s, c)[0]
		if hits := s.Stats().DenyHits - before; (hits == 0) != asked || hits > 1 {
			t.Errorf("%s: %d answers are remembered, and say %+v", name, hits, d)
		}
		return d
	}
	rule := storetest.Rule(t, "bucket", "token_bucket", algorithms.Limit{Events: 10, Window: time.Hour})
	large := store.Check{Rule: rule, Key: "a", Cost: 5}
	charged := asks("8 of 10", true, store.Check{Rule: rule, Key: "a", Cost: 8})
	asks("too much", true, large)
	asks("too much again, while less may pass", true, large)
	asks("the last 2", true, store.Check{Rule: rule, Key: "a", Cost: 2})
	asks("too much, and what its wait is", true, large)
	asks("too much again", false, large)
	peek := large
	peek.Peek = true
	asks("a peek", true, peek)
	s.Adjust(store.Adjustment{Check: large, At: charged.Booked(), Turn: charged.Turn(), Delta: 10})
	s.Flush()
	if d := asks("after a late cost", true, large); d.RetryAfter < time.Hour {
		t.Errorf("the wait is that before the late cost: %+v", d)
	}
	must(t, s.Reset(t.Context(), rule, "a"))
	if d := asks("after a reset", true, large); !d.Allowed {
		t.Errorf("it was reset: %+v", d)
	}

	banned := banning(t, 2)
	asks("the first", true, banned)
	asks("a refusal that counts", true, banned)
	if d := asks("the last of them", true, banned); !d.BanBegins {
		t.Errorf("no ban begins: %+v", d)
	}
	if d := asks("banned", false, banned); !d.Banned || d.BanBegins {
		t.Errorf("%+v", d)
	}
	must(t, s.Unban(t.Context(), banned.Rule, store.Selector{Key: banned.Key}))
	if d := asks("unbanned", true, banned); d.Banned {
		t.Errorf("%+v", d)
	}
}
