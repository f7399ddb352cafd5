//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendHotAndCold: what one process decides by plain calls, because a key comes there rarely, respects
// what other processes hold of the key. Whatever zones a request meets, no key of any zone admits more
// than its limit, and each request is charged in all its zones or in none.
func TestLendHotAndCold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const keys = 6
	limit := func(n int64) algorithms.Limit { return algorithms.Limit{Events: n, Window: 1000 * time.Hour} }
	rules := []*store.Rule{
		lendingRule(t, "fixed", "fixed_window", limit(150), period),
		lendingRule(t, "log", "sliding_window_log", limit(170), period),
		lendingRule(t, "counter", "sliding_window_counter", limit(160), period),
	}
	plain, err := store.NewRule("plain", rules[0].Algorithm(), limit(140), 0)
	if err != nil {
		t.Fatal(err)
	}
	rules = append(rules, plain)
	plainLog, err := store.NewRule("plain log", rules[1].Algorithm(), limit(145), 0)
	if err != nil {
		t.Fatal(err)
	}
	rules = append(rules, plainLog)
	stores := make([]*redisstore.Store, 4)
	for i := range stores {
		stores[i] = open(t, redisstore.Options{Address: server.Addr()})
	}
	type state struct {
		rule *store.Rule
		key  string
	}
	passed := make(map[state]int64)
	var mu sync.Mutex
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range deep.Steps(250, 5000) {
				// Each process has another key that comes often.
				key := i % len(stores)
				if r.IntN(4) == 0 {
					key = r.IntN(keys)
				}
				var checks []store.Check
				for _, rule := range rules {
					if r.IntN(3) == 0 {
						checks = append(checks, store.Check{Rule: rule, Key: fmt.Sprint(key), Cost: 1 + r.Int64N(2)})
					}
				}
				decisions := make([]algorithms.Decision, len(checks))
				if err := stores[i%len(stores)].Take(context.Background(), checks, decisions); err != nil {
					t.Error(err)
					return
				}
				pass := true
				for _, d := range decisions {
					pass = pass && d.Allowed
				}
				if !pass {
					continue
				}
				mu.Lock()
				for _, c := range checks {
					passed[state{c.Rule, c.Key}] += c.Cost
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	closeAll(t, stores)
	reader, full := open(t, redisstore.Options{Address: server.Addr()}), 0
	for s, n := range passed {
		switch most := s.rule.Limit().Events; {
		case n > most:
			t.Errorf("zone %s, key %s: %d of %d passed", s.rule.Zone(), s.key, n, most)
		case n > most/2:
			full++
		}
		if n := usedOf(t, reader, s.rule, s.key); n < passed[s] {
			t.Errorf("zone %s, key %s: %d used, %d passed", s.rule.Zone(), s.key, n, passed[s])
		}
	}
	if full < 6 {
		t.Errorf("only %d of %d limits were half used", full, len(passed))
	}
}

// TestLendAlone: the only process that uses a Redis borrows a key sooner than one of several.
func TestLendAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second)
	until := func(key string) (requests int) {
		for begin := s.Stats().Lent["z"]; s.Stats().Lent["z"] == begin && requests < 100; requests++ {
			if d, err := decideOne(s, store.Check{Rule: rule, Key: key, Cost: 1}); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		return requests
	}
	s.Beat()
	if n := until("alone"); n != 5 {
		t.Errorf("alone, a loan after %d requests, want 5", n)
	}
	open(t, redisstore.Options{Address: server.Addr(), Instance: "another"}).Beat()
	s.Beat()
	if n := until("together"); n != 8 {
		t.Errorf("with another process, a loan after %d requests, want 8", n)
	}
}
