package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestDamagedState: that states are damaged is logged once a minute. FuzzStoredState has what comes of it.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	core, logs := observer.New(zapcore.WarnLevel)
	options := at(server)
	options.Logger = func() *zap.Logger { return zap.New(core) }
	s := open(t, options)
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 3, time.Hour))
		if err := server.Admin().Set(t.Context(), s.Key(rule, "client"), "hello", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if d := take(t, s, rule, "client", 1); d.Remaining != 2 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if n := logs.FilterMessageSnippet("a state in redis is damaged").Len(); n != 1 {
		t.Errorf("%d log lines within a minute, want 1", n)
	}
}

// TestLyingRedis: an impossible reply is an error, never a decision.
func TestLyingRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	limit := algorithms.Limit{Events: 3, Window: time.Hour}
	computed, told := storetest.Rule(t, "counter", "token_bucket", limit), storetest.Rule(t, "log", "sliding_window_log", limit)
	const end = "return struct.pack('>BBi8i8i8i8i8i8', 0, %s) .. ' 0 1800000000 0'"
	believed := func(script string, rule *store.Rule) (d [1]algorithms.Decision, err error) {
		s := open(t, at(server))
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
		fmt.Sprintf(end, "9, 3, 2, 0, 0, 0, 0"),                         // an answer of another version
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
