//go:build deep

package redisstore_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// lendingRule returns a rule of a zone with lend.
func lendingRule(t testing.TB, zone, algorithm string, l algorithms.Limit, hold time.Duration) *store.Rule {
	t.Helper()
	l.Hold = hold
	r := storetest.Rule(t, zone, algorithm, l)
	if r.Hold() == 0 {
		t.Fatalf("nothing can be held of %+v", l)
	}
	return r
}

// decideOne has a store decide one check.
func decideOne(s *redisstore.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	return d[0], err
}

// floodAll makes requests of one key at several stores, some at a time, and returns how many passed.
func floodAll(t testing.TB, stores []*redisstore.Store, requests, atOnce int, checks func() []store.Check) (passed int64) {
	t.Helper()
	var admitted, asked atomic.Int64
	var wait sync.WaitGroup
	for i := range atOnce {
		wait.Go(func() {
			for asked.Add(1) <= int64(requests) {
				c := checks()
				d := make([]algorithms.Decision, len(c))
				if err := stores[i%len(stores)].Take(context.Background(), c, d); err != nil {
					t.Error(err)
					return
				}
				pass := true
				for i := range d {
					pass = pass && d[i].Allowed
					if d[i].Remaining < 0 || d[i].Remaining > d[i].Quota || !d[i].Allowed && d[i].RetryAfter <= 0 {
						t.Errorf("a decision that cannot be: %+v", d[i])
					}
				}
				if pass {
					admitted.Add(1)
				}
			}
		})
	}
	wait.Wait()
	return admitted.Load()
}

// TestLendFlood: three processes with lend admit what the limit allows, never more and hardly less,
// with few calls.
func TestLendFlood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		algorithm string
		limit     algorithms.Limit
	}{
		{"fixed_window", algorithms.Limit{Events: 3000, Window: 1000 * time.Hour}},
		{"sliding_window_log", algorithms.Limit{Events: 3000, Window: time.Hour}},
		{"sliding_window_counter", algorithms.Limit{Events: 3000, Window: 24 * time.Hour}},
		{"leaky_bucket", algorithms.Limit{Events: 3000, Window: 24 * time.Hour}},
		{"token_bucket", algorithms.Limit{Events: 2000, Window: time.Second}},
	} {
		t.Run(c.algorithm, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			stores := make([]*redisstore.Store, 3)
			for i := range stores {
				stores[i] = open(t, redisstore.Options{Address: server.Addr()})
				stores[i].Silence()
			}
			rule := lendingRule(t, "z", c.algorithm, c.limit, 50*time.Millisecond)
			began := time.Now()
			passed := floodAll(t, stores, 6000, 48, func() []store.Check { return []store.Check{{Rule: rule, Key: "k", Cost: 1}} })
			took := time.Since(began)
			most := c.limit.Events
			if c.algorithm == "token_bucket" {
				most += int64(took.Seconds() * float64(c.limit.Events))
			}
			made := calls(t, server)
			t.Logf("%d of at most %d passed in %v, %d calls", passed, most, took, made)
			// How much of what comes back is used depends on when the requests come, and what is held is lost if
			// its process does not run for a while.
			least := c.limit.Events / 3
			if patient.Idle() {
				least = c.limit.Events * 97 / 100
			}
			if passed > most || passed < least {
				t.Errorf("%d passed, want %d to %d", passed, least, most)
			}
			if made > 6000/3+int(200*took.Seconds()) {
				t.Errorf("%d calls for 6000 requests", made)
			}
		})
	}
}

// TestLendColdKeys: a key that comes rarely goes the way of a zone without lend. Each of its
// requests is one call, and nothing is held of it.
func TestLendColdKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: 24 * time.Hour}, 2*time.Second)
	n := 0
	before := calls(t, server)
	floodAll(t, []*redisstore.Store{s}, 150, 1, func() []store.Check {
		n++
		return []store.Check{{Rule: rule, Key: strconv.Itoa(n % 75), Cost: 1}}
	})
	if spared := s.Stats().Spared; spared != 0 {
		t.Errorf("%d requests were spared", spared)
	}
	if made := calls(t, server) - before; made < 149 || made > 151 {
		t.Errorf("%d calls for 150 requests", made)
	}
	states := server.Admin().Keys(context.Background(), "*:token_bucket.*").Val()
	for _, key := range states {
		if n := server.Admin().StrLen(context.Background(), key).Val(); n != 36 {
			t.Errorf("the state of %s has %d bytes", key, n)
		}
	}
	if len(states) != 75 {
		t.Errorf("%d states of 75 keys", len(states))
	}
}
