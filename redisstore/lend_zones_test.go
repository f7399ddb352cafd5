//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// used returns how much of a limit a key has used, by another process that holds nothing.
func used(t testing.TB, server *redistest.Server, rule *store.Rule) int64 {
	t.Helper()
	return usedOf(t, open(t, redisstore.Options{Address: server.Addr()}), rule, "k")
}

func usedOf(t testing.TB, s *redisstore.Store, rule *store.Rule, key string) int64 {
	t.Helper()
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Peek: true}}, d[:]); err != nil {
		t.Fatal(err)
	}
	return d[0].Quota - d[0].Remaining
}

// period lets loans last longer than this process may stand still.
const period = 2 * time.Second

// closeAll closes stores, which give back what they hold.
func closeAll(t testing.TB, stores []*redisstore.Store) {
	t.Helper()
	for _, s := range stores {
		closed(t, s)
	}
}

// TestLendAllOrNothing: a request is charged in all its zones or in none, whether they lend or not.
// What is not spent is given back when the stores are closed.
func TestLendAllOrNothing(t *testing.T) {
	t.Parallel()
	perHour := func(n int64) algorithms.Limit { return algorithms.Limit{Events: n, Window: 1000 * time.Hour} }
	for name, plain := range map[string]bool{"all lend": false, "one does not": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			stores := make([]*redisstore.Store, 3)
			for i := range stores {
				stores[i] = open(t, redisstore.Options{Address: server.Addr()})
			}
			wide := lendingRule(t, "wide", "fixed_window", perHour(1000), period)
			log := lendingRule(t, "log", "sliding_window_log", perHour(900), period)
			narrow := lendingRule(t, "narrow", "sliding_window_counter", perHour(600), period)
			if plain {
				var err error
				if narrow, err = store.NewRule("narrow", narrow.Algorithm(), narrow.Limit(), 0); err != nil {
					t.Fatal(err)
				}
			}
			passed := floodAll(t, stores, 1500, 12, func() []store.Check {
				return []store.Check{{Rule: wide, Key: "k", Cost: 1}, {Rule: narrow, Key: "k", Cost: 1}, {Rule: log, Key: "k", Cost: 1}}
			})
			if passed > 600 || passed < 300 {
				t.Errorf("%d passed, want 300 to 600", passed)
			}
			closeAll(t, stores)
			for _, rule := range []*store.Rule{wide, narrow, log} {
				rule := rule
				if n := used(t, server, rule); n < passed {
					t.Errorf("zone %s: %d used, %d passed", rule.Zone(), n, passed)
				}
				// Loans that are spent in full are not reported, but end.
				patient.Until(t, "the loans are over", func() bool { return used(t, server, rule) == passed })
			}
		})
	}
}

// TestLendRefunds: what is refunded comes back, whether it was reported or not.
func TestLendRefunds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 100, Window: 1000 * time.Hour}, period)
	for i := range 500 {
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		var d [1]algorithms.Decision
		if err := s.Take(context.Background(), []store.Check{c}, d[:]); err != nil {
			t.Fatal(err)
		}
		if !d[0].Allowed {
			t.Fatalf("request %d is refused, although all before it were refunded: %+v", i, d[0])
		}
		s.Adjust(store.Adjustment{Check: c, At: d[0].Booked(), Turn: d[0].Turn(), Delta: -1})
		if i%50 == 0 {
			s.Flush()
		}
	}
	s.Flush()
	s.Adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "k", Cost: 1}, At: time.Now().UnixMicro(), Delta: 7})
	s.Flush()
	closed(t, s)
	patient.UntilEqual(t, "what is used, which was charged late", func() int64 { return used(t, server, rule) }, 7)
}

// TestLendReset: a key that is reset begins from zero.
func TestLendReset(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	for _, algorithm := range []string{"token_bucket", "sliding_window_log"} {
		rule := lendingRule(t, "z", algorithm, algorithms.Limit{Events: 50, Window: 1000 * time.Hour}, period)
		checks := func() []store.Check { return []store.Check{{Rule: rule, Key: "k", Cost: 1}} }
		if n := floodAll(t, []*redisstore.Store{s}, 60, 1, checks); n != 50 {
			t.Fatalf("%s: %d passed, want 50", algorithm, n)
		}
		if err := s.Reset(context.Background(), rule, "k"); err != nil {
			t.Fatal(err)
		}
		if n := floodAll(t, []*redisstore.Store{s}, 60, 1, checks); n != 50 {
			t.Errorf("%s: %d passed after the reset, want 50", algorithm, n)
		}
	}
}

// TestLendLent: what is lent can be seen, and is not free for others.
func TestLendLent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "token_bucket", algorithms.Limit{Events: 1000, Window: 24 * time.Hour}, 10*time.Second)
	floodAll(t, []*redisstore.Store{s}, 10, 1, func() []store.Check { return []store.Check{{Rule: rule, Key: "k", Cost: 1}} })
	lent, borrowers, err := s.Lent(context.Background(), rule, "k")
	if err != nil {
		t.Fatal(err)
	}
	if n := used(t, server, rule); lent == 0 || borrowers != 1 || n < 4+lent || n > 10+lent {
		t.Errorf("%d lent to %d, %d used", lent, borrowers, n)
	}
	if stats := s.Stats(); stats.Lent["z"] == 0 || stats.Lent["z"] > lent || stats.Loans["z"] != 1 || stats.Spared == 0 || stats.Spared > 6 {
		t.Errorf("%+v", stats)
	}
}
