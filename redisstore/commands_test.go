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
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// commands returns how often the server has carried out each command since its statistics were reset. Those within
// scripts count too.
func commands(t *testing.T, server *redistest.Server) map[string]int {
	t.Helper()
	info, err := server.Admin().InfoMap(t.Context(), "commandstats").Result()
	must(t, err)
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
	must(t, server.Admin().ConfigResetStat(t.Context()).Err())
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

// TestExamine: what keeps a Redis from deciding is found by its name, and an examination leaves
// nothing behind.
func TestExamine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("right"), redistest.WithTLS(false), redistest.WithArgs("--maxmemory", "100mb"),
		redistest.WithUser("least", "p", leastACL(t)...),
		redistest.WithUser("copied", "p", append(leastACL(t), redistest.OptionalRights...)...),
		redistest.WithUser("noeval", "p", "~*", "+@all", "-eval", "-evalsha"),
		redistest.WithUser("elsewhere", "p", "~other:*", "+@all"),
	)
	replica := redistest.Start(t)
	must(t, replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	full := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "noeviction"))
	fill(full)
	dead := redistest.Start(t)
	dead.Kill()
	for name, c := range map[string]struct {
		address, user, password string
		tls                     *redisstore.TLS
		trouble                 string
		described               bool
	}{
		"works":           {address: server.Addr(), password: "right", described: true},
		"least rights":    {address: server.Addr(), user: "least", password: "p"},
		"the line copied": {address: server.Addr(), user: "copied", password: "p", described: true},
		"no eval":         {address: server.Addr(), user: "noeval", password: "p", trouble: store.TroubleRights},
		"other keys":      {address: server.Addr(), user: "elsewhere", password: "p", trouble: store.TroubleRights, described: true},
		"wrong password":  {address: server.Addr(), password: "wrong", trouble: store.TroubleLogin},
		"no password":     {address: server.Addr(), trouble: store.TroubleLogin},
		"no tls":          {address: server.TLSAddr(), password: "right", trouble: store.TroubleTLS},
		"unknown ca":      {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{}, trouble: store.TroubleTLS},
		"known ca":        {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{CA: server.TLS().CA}, described: true},
		"wrong name":      {address: server.TLSAddr(), password: "right", tls: &redisstore.TLS{CA: server.TLS().CA, ServerName: "other"}, trouble: store.TroubleTLS},
		"replica":         {address: replica.Addr(), trouble: store.TroubleReplica, described: true},
		"full":            {address: full.Addr(), trouble: store.TroubleMemory, described: true},
		"dead":            {address: dead.Addr(), trouble: store.TroubleAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, redisstore.Options{Address: c.address, Username: c.user, Password: c.password, TLS: c.tls})
			found := s.Examine(t.Context())
			if len(found.Servers) != 1 {
				t.Fatalf("%d servers", len(found.Servers))
			}
			got := found.Servers[0]
			if got.Trouble != c.trouble || (got.Err == nil) != (c.trouble == "") {
				t.Errorf("trouble %q, want %q; %v", got.Trouble, c.trouble, got.Err)
			}
			if got.Described != c.described {
				t.Errorf("described: %v", got.Described)
			}
			if c.described && (got.Version == "" || got.Evicts == "" || got.Memory == 0 || got.MaxMemory == 0 && c.address == server.Addr()) {
				t.Errorf("%+v", got)
			}
			if c.trouble == "" && got.RoundTrip <= 0 {
				t.Errorf("round trip %v", got.RoundTrip)
			}
		})
	}
	patient.Until(t, "the probe's key to expire", func() bool { return server.Admin().Exists(t.Context(), "rl:probe").Val() == 0 })
}
