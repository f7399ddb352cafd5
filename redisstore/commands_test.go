//go:build deep

package redisstore_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// commands returns how often the server has carried out each command since its statistics were reset. Those within
// scripts count too.
func commands(t *testing.T, server *redistest.Server) map[string]int {
	t.Helper()
	info, err := server.Admin().InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int)
	for name, stats := range info["Commandstats"] {
		n := 0
		if _, err := fmt.Sscanf(stats, "calls=%d", &n); err != nil {
			t.Fatal(stats, err)
		}
		all[name[len("cmdstat_"):]] = n
	}
	return all
}

func reset(t *testing.T, server *redistest.Server) {
	t.Helper()
	if err := server.Admin().ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestOneCallForAllZones counts what Redis is asked to do for a request of three zones with overrides and bans: one
// call, all their rules are read at once, and the time is asked for once.
func TestOneCallForAllZones(t *testing.T) {
	t.Parallel()
	const requests = 10
	server := redistest.Start(t)
	s := open(t, at(server))
	var checks []store.Check
	for i := range 3 {
		c := banning(t, 3)
		c.Rule = storetest.Rule(t, fmt.Sprint("zone", i), "token_bucket", algorithms.Limit{Events: 1000, Window: time.Hour})
		c.KeyRules.Overrides = true
		checks = append(checks, c)
	}
	ask(t, s, checks...) // connects, and sends the script
	s.Silence()
	reset(t, server)
	for range requests {
		ask(t, s, checks...)
	}
	got := commands(t, server)
	if got["evalsha"] != requests || got["mget"] != requests || got["set"]+got["setrange"] != 3*requests || got["get"] > 0 {
		t.Errorf("for %d requests of 3 zones: %v", requests, got)
	}
	// A store that was opened sends the script, some time, and asks for the time now and then. No request waits for it.
	if got["eval"] > 1 || got["time"] < requests || got["time"] >= 2*requests || got["hello"] > 1 {
		t.Errorf("beside %d requests: %v", requests, got)
	}
	for _, other := range []string{"script", "keys", "scan"} {
		if got[other] > 0 {
			t.Errorf("%s is called %d times", other, got[other])
		}
	}
}

// TestOneRequestOfAnyCost: what a charge of a log, a late cost and a refund take of Redis does
// not depend on the cost.
func TestOneRequestOfAnyCost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, setNow := openWithClock(t, server)
	s.Silence()
	side := newRedisSide(s)
	rule := storetest.Rule(t, "tokens", "sliding_window_log", algorithms.Limit{Events: algorithms.MaxLogEvents, Window: time.Hour})
	for _, cost := range []int64{2, 100_000, 1_000_000, algorithms.MaxLogEvents} {
		client, now := strconv.FormatInt(cost, 10), storetest.Start
		takes := func(what string, do func()) {
			t.Helper()
			now += 1e6
			setNow(now)
			reset(t, server)
			do()
			sum := 0
			for _, n := range commands(t, server) {
				sum += n
			}
			bytes, err := server.Admin().MemoryUsage(t.Context(), s.Key(rule, client)).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if sum > 50 || bytes > 400 {
				t.Errorf("%s of cost %d: %d commands and %d bytes in Redis, want at most 50 and 400", what, cost, sum, bytes)
			}
		}
		check := store.Check{Rule: rule, Key: client, Cost: cost}
		var d algorithms.Decision
		takes("a charge", func() { d = side.take(t, check) })
		if !d.Allowed || d.Remaining != algorithms.MaxLogEvents-cost {
			t.Fatalf("cost %d: %+v", cost, d)
		}
		made := d.At
		takes("a late cost", func() { side.adjust(t, store.Adjustment{Check: check, At: made, Delta: cost}) })
		takes("a refund", func() { side.adjust(t, store.Adjustment{Check: check, At: made, Delta: -cost}) })
		takes("a refusal", func() { d = side.take(t, store.Check{Rule: rule, Key: client, Cost: algorithms.MaxLogEvents}) })
		if want := algorithms.MaxLogEvents - cost; d.Allowed || d.Remaining != want {
			t.Errorf("cost %d: %d remain of what the late cost left, want %d", cost, d.Remaining, want)
		}
	}
}
