package redisstore_test

import (
	"context"
	"strconv"
	"strings"
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

// calls returns how many script calls the server has received.
func calls(t *testing.T, server *redistest.Server) int {
	t.Helper()
	return callsOf(t, server.Admin().Info(context.Background(), "commandstats").Val(), "evalsha")
}

// callsOf returns how often a command was called.
func callsOf(t *testing.T, stats, command string) int {
	t.Helper()
	_, text, found := strings.Cut(stats, "cmdstat_"+command+":calls=")
	if !found {
		return 0
	}
	text, _, _ = strings.Cut(text, ",")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestConcurrentDecisionsShareCalls: requests that come while calls are in progress share the
// next call, and each is decided for itself.
func TestConcurrentDecisionsShareCalls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	far := newFar(t, server.Addr())
	s := open(t, redisstore.Options{Address: far.address})
	client := storetest.Rule(t, "client", "token_bucket", algorithms.Limit{Events: 5, Window: time.Hour})
	all := storetest.Rule(t, "all", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour})
	take(t, s, client, "warm", 1)
	before := calls(t, server)
	far.delay(100 * time.Millisecond)

	var passed [40]atomic.Int64
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			decisions := make([]algorithms.Decision, 2)
			checks := []store.Check{{Rule: client, Key: strconv.Itoa(i % 40), Cost: 1}, {Rule: all, Cost: 1}}
			if err := s.Take(context.Background(), checks, decisions); err != nil {
				t.Error(err)
			} else if decisions[0].Allowed && decisions[1].Allowed {
				passed[i%40].Add(1)
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for i := range passed {
		n := passed[i].Load()
		total += n
		if n > 5 {
			t.Errorf("client %d: %d passed, its limit is 5", i, n)
		}
	}
	if total != 100 {
		t.Errorf("%d passed, the limit of all is 100", total)
	}
	if n := calls(t, server) - before; n > 60 {
		t.Errorf("%d calls for 400 requests at once", n)
	} else {
		t.Logf("%d calls for 400 requests at once", n)
	}
}

// TestAbandonedDecisions: requests that run out of time while they wait return, and later
// requests are decided.
func TestAbandonedDecisions(t *testing.T) {
	patient.BesideOthers(t)
	server := redistest.Start(t)
	far := newFar(t, server.Addr())
	s := open(t, redisstore.Options{Address: far.address})
	rule := hourly(t)
	take(t, s, rule, "client", 1)
	far.delay(200 * time.Millisecond)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := s.Take(ctx, []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)); err == nil {
				t.Error("answered before it could be")
			}
			patient.Soon(t, "to be let go", time.Since(start), 2*time.Second)
		})
	}
	wg.Wait()
	far.delay(0)
	patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
}
