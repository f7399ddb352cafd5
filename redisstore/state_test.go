package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestARefusalWritesNothing: refused requests and peeks make no key, and change none.
func TestARefusalWritesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, admin, ctx := open(t, redisstore.Options{Address: server.Addr()}), server.Admin(), context.Background()
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 3, time.Hour))
		take(t, s, rule, "new", 0)
		take(t, s, rule, "new", 4)
		if n := admin.Exists(ctx, s.Key(rule, "new")).Val(); n != 0 {
			t.Fatalf("%s: a refusal made a key", name)
		}
		take(t, s, rule, "client", 3)
		before, ttl := admin.Dump(ctx, s.Key(rule, "client")).Val(), admin.PExpireTime(ctx, s.Key(rule, "client")).Val()
		for range 5 {
			take(t, s, rule, "client", 1)
			take(t, s, rule, "client", 0)
			take(t, s, rule, "client", 9)
		}
		if after := admin.Dump(ctx, s.Key(rule, "client")).Val(); after != before || before == "" {
			t.Fatalf("%s: refusals changed the key:\n%q\n%q", name, before, after)
		}
		if after := admin.PExpireTime(ctx, s.Key(rule, "client")).Val(); after != ttl {
			t.Fatalf("%s: refusals moved the expiry from %v to %v", name, ttl, after)
		}
	}
}

// TestTTLCoversRecovery: a key lives at least until its state is worth nothing, and not forever.
func TestTTLCoversRecovery(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, admin, ctx := open(t, redisstore.Options{Address: server.Addr()}), server.Admin(), context.Background()
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // see TestLeasesAreRenewed
		}
		for _, limit := range []algorithms.Limit{
			{Events: 1_000_000, Window: time.Second},
			{Events: 5, Window: time.Millisecond},
			{Events: 3, Window: time.Minute},
			{Events: 1, Window: algorithms.MaxWindow},
		} {
			rule := storetest.Rule(t, "zone", name, limit)
			began := time.Now()
			d := take(t, s, rule, limit.Window.String(), 1)
			ttl := admin.PTTL(ctx, s.Key(rule, limit.Window.String())).Val()
			// The time since the decision has passed for the key, too. Above 64 s, whole 8 s are set: see lua/write.lua.
			passed, most := time.Since(began)+10*time.Millisecond, d.ResetAfter*5/4+4*time.Second
			if ttl > 64*time.Second {
				most += 8 * time.Second
			}
			if ttl < d.ResetAfter-passed || ttl > most {
				t.Errorf("%s %+v: ttl %v, %v after a decision that says %v", name, limit, ttl, passed, d.ResetAfter)
			}
		}
	}
}

// TestDamagedState: anything that is not a state counts as none, is logged, and is replaced.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	core, logs := observer.New(zapcore.WarnLevel)
	s := open(t, redisstore.Options{Address: server.Addr(), Logger: func() *zap.Logger { return zap.New(core) }})
	admin, ctx := server.Admin(), context.Background()
	huge := strings.Repeat("\x7f\xff\xff\xff\xff\xff\xff\xff", 3) + "\x00\x00\x00\x00"
	spoil := map[string]func(key string) error{
		"text":        func(k string) error { return admin.Set(ctx, k, "hello", 0).Err() },
		"empty":       func(k string) error { return admin.Set(ctx, k, "", 0).Err() },
		"numbers":     func(k string) error { return admin.Set(ctx, k, huge, 0).Err() },
		"negative":    func(k string) error { return admin.Set(ctx, k, strings.Repeat("\xff", 24)+"\x00\x00\x00\x00", 0).Err() },
		"list":        func(k string) error { return admin.RPush(ctx, k, "a", "b", "c").Err() },
		"list of inf": func(k string) error { return admin.RPush(ctx, k, "inf", "nan", "1e300").Err() },
		"list of nan": func(k string) error { return admin.RPush(ctx, k, "nan").Err() },
		"hash":        func(k string) error { return admin.HSet(ctx, k, "a", "b").Err() },
		"set":         func(k string) error { return admin.SAdd(ctx, k, "a").Err() },
		"scores": func(k string) error {
			return admin.ZAdd(ctx, k, redis.Z{Score: math.Inf(1), Member: "x"}, redis.Z{Score: -5, Member: "y"}, redis.Z{Score: 8e15, Member: "z"}).Err()
		},
		"future": func(k string) error { return admin.RPush(ctx, k, "8000000000000000").Err() },
	}
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 3, time.Hour))
		for what, do := range spoil {
			key := s.Key(rule, what)
			if err := do(key); err != nil {
				t.Fatal(err)
			}
			if d := take(t, s, rule, what, 0); !d.Allowed || d.Remaining != 3 {
				t.Errorf("%s, %s: peek: %+v", name, what, d)
			}
			passed := 0
			for range 5 {
				if take(t, s, rule, what, 1).Allowed {
					passed++
				}
			}
			if passed != 3 {
				t.Errorf("%s, %s: %d admitted, want 3", name, what, passed)
			}
			if ttl := admin.PTTL(ctx, key).Val(); ttl <= 0 {
				t.Errorf("%s, %s: left without an expiry", name, what)
			}
		}
	}
	if n := logs.FilterMessageSnippet("a state in redis is damaged").Len(); n != 1 {
		t.Errorf("%d log lines within a minute, want 1", n)
	}
}

// TestLyingRedis: an impossible reply is an error, never a decision.
func TestLyingRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limit := algorithms.Limit{Events: 3, Window: time.Hour}
	computed, told := storetest.Rule(t, "counter", "token_bucket", limit), storetest.Rule(t, "log", "sliding_window_log", limit)
	const end = "return struct.pack('>Bi8i8i8i8i8i8', %s) .. ' 0 1800000000 0'"
	believed := func(script string, rule *store.Rule) (d [1]algorithms.Decision, err error) {
		s := open(t, redisstore.Options{Address: server.Addr()})
		s.SetScript(script)
		return d, s.Take(context.Background(), []store.Check{{Rule: rule, Key: "k", Cost: 1}}, d[:])
	}
	for _, script := range []string{
		"return 1", "return 'x'", "return {1, 2}", "return false", "return redis.error_reply('ERR no')", "return redis.status_reply('OK')",
		"return string.rep('\\255', 65)",
		"return string.rep('\\0', 64)",
		"return string.rep('\\0', 65 * 2)",
		fmt.Sprintf(end, "1, 3, 4, 0, 0, 0, 0"),                         // more remaining than the quota
		fmt.Sprintf(end, "0, 3, 0, 0, 0, 0, 0"),                         // refused without a wait
		fmt.Sprintf(end, "1, 3, 2, 4503599627370497, 0, 0, 0"),          // booked more than a century ahead
		fmt.Sprintf(end, "9, 3, 2, 0, 0, 0, 0"),                         // flags of another version
		fmt.Sprintf(end, "0, 3, 2, -2, 0, 0, 0"),                        // less than never
		fmt.Sprintf(end, "1, 3, 2, 0, 0, 0, 0) .. struct.pack('>H', 1"), // a note of a decision that is made in Redis
	} {
		for _, rule := range []*store.Rule{computed, told} {
			if d, err := believed(script, rule); err == nil {
				t.Errorf("%s: %s: believed: %+v", rule.Zone(), script, d[0])
			}
		}
	}
	if d, err := believed(fmt.Sprintf(end, "1, 3, 2, 0, 0, 0, 0"), told); err != nil || d[0].Remaining != 2 {
		t.Errorf("a possible reply: %v, %+v", err, d[0])
	}
}

// TestOneCallForAllZones counts what Redis is asked to do for a request of three zones.
func TestOneCallForAllZones(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, admin, ctx := open(t, redisstore.Options{Address: server.Addr()}), server.Admin(), context.Background()
	checks := []store.Check{
		{Rule: storetest.Rule(t, "a", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour}), Key: "client", Cost: 1},
		{Rule: storetest.Rule(t, "b", "fixed_window", algorithms.Limit{Events: 100, Window: time.Hour}), Key: "client", Cost: 1},
		{Rule: storetest.Rule(t, "c", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour}), Cost: 1},
	}
	decisions := make([]algorithms.Decision, len(checks))
	takeAll := func() {
		t.Helper()
		if err := s.Take(ctx, checks, decisions); err != nil {
			t.Fatal(err)
		}
	}
	takeAll() // connects, and sends the script
	s.Silence()
	if err := admin.ConfigResetStat(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		takeAll()
	}
	stats := admin.Info(ctx, "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_evalsha:calls=10,") {
		t.Errorf("want 10 calls of evalsha:\n%s", stats)
	}
	for _, other := range []string{"cmdstat_script", "cmdstat_keys:", "cmdstat_scan:"} {
		if strings.Contains(stats, other) {
			t.Errorf("%s was called:\n%s", other, stats)
		}
	}
	// A store that was opened sends the script, some time, on a connection of its own.
	opened := callsOf(t, stats, "eval")
	if n := callsOf(t, stats, "hello"); n > 1 {
		t.Errorf("%d connections were made:\n%s", n, stats)
	}
	// When it looks after a connection, it asks for the time as well: more seldom than requests ask here.
	if n := callsOf(t, stats, "time"); opened > 1 || n < 10+opened || n >= 2*10 {
		t.Errorf("want TIME once a call, and not once a zone:\n%s", stats)
	}
}
