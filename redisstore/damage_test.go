package redisstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
		must(t, server.Admin().Set(t.Context(), s.Key(rule, "client"), "hello", 0).Err())
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

// anyBurst is the longest time until a bucket is full that does not count as damaged, because
// another limit may have the same rate and a larger burst.
const anyBurst = 1e15 * time.Microsecond

// damaged are limits whose states FuzzStoredState damages, and the longest wait that each can
// lead to.
var damaged = []struct {
	algorithm string
	limit     algorithms.Limit
	wait      time.Duration
}{
	{"token_bucket", algorithms.Limit{Events: 3, Window: time.Hour, Burst: 5}, anyBurst},
	{"token_bucket", algorithms.Limit{Events: 7, Window: algorithms.MaxWindow}, anyBurst},
	{"token_bucket", algorithms.Limit{Events: 2, Window: time.Second, Burst: 5, Refill: algorithms.RefillInterval}, anyBurst},
	{"leaky_bucket", algorithms.Limit{Events: 5, Window: time.Millisecond}, anyBurst},
	{"leaky_bucket", algorithms.Limit{Events: 1, Window: time.Minute, Burst: 4, Mode: algorithms.ModeQueue, MaxWait: 2 * time.Minute}, anyBurst},
	{"fixed_window", algorithms.Limit{Events: 3, Window: time.Hour}, time.Hour},
	{"fixed_window", algorithms.Limit{Events: 3, Window: time.Hour, Align: algorithms.AlignFirstRequest}, time.Hour},
	{"fixed_window", algorithms.Limit{Events: 3, Calendar: algorithms.Month}, 31 * 24 * time.Hour},
	{"sliding_window_log", algorithms.Limit{Events: 5, Window: time.Minute}, time.Minute},
	{"sliding_window_log", algorithms.Limit{Events: 2, Window: algorithms.MaxWindow}, algorithms.MaxWindow},
	{"sliding_window_counter", algorithms.Limit{Events: 5, Window: time.Minute}, 2 * time.Minute},
	{"concurrency", algorithms.Limit{Events: 4, Lease: time.Hour}, time.Hour},
}

// FuzzStoredState writes anything to a key: a string, a list, a sorted set, or another type. No
// request may fail because of it, no client may be refused or admitted forever, and the state
// that replaces it expires.
func FuzzStoredState(f *testing.F) {
	server := redistest.Shared(f)
	s, setNow := openWithClock(f, server)
	ctx, admin := context.Background(), server.Admin()
	for _, seed := range seeds() {
		for i := range damaged {
			f.Add(seed.kind, byte(i), seed.data)
		}
	}
	f.Fuzz(func(t *testing.T, kind, which byte, data []byte) {
		now := storetest.Start
		setNow(now)
		one := damaged[int(which)%len(damaged)]
		rule := storetest.Rule(t, "zone", one.algorithm, one.limit)
		key := s.Key(rule, "client")
		ask := func(cost int64) algorithms.Decision { return take(t, s, rule, "client", cost) }
		must(t, admin.Del(ctx, key).Err())
		if err := put(ctx, admin, key, kind, data); err != nil {
			t.Fatalf("putting %q: %v", data, err)
		}
		// A string of this length is a state, and says itself until when Redis keeps it. Nothing shows
		// that another program has written it without an expiry, so it gets one.
		if len(data) == 36 {
			admin.Expire(ctx, key, time.Hour)
		}

		const believed = 24 * time.Hour // how far ahead of the clock a state may be
		quota := ask(0).Quota
		ask(quota + 1)
		for range 2 {
			passed := int64(0)
			for ask(1).Allowed {
				if passed++; passed > quota {
					t.Fatalf("%+v: more than %d admitted at once", one, quota)
				}
			}
			if ttl := admin.PTTL(ctx, key).Val(); passed > 0 && ttl <= 0 {
				t.Fatalf("%+v: left without an expiry: %v", one, ttl)
			}
			for cost := int64(1); cost <= quota; cost++ {
				if d := ask(cost); d.Allowed || d.RetryAfter > one.wait+believed {
					t.Fatalf("%+v: cost %d: %+v", one, cost, d)
				}
			}
			now += (one.wait + believed).Microseconds()
			setNow(now)
			if d := ask(quota); !d.Allowed {
				t.Fatalf("%+v: still refused after %v: %+v", one, one.wait+believed, d)
			}
		}
	})
}

type seed struct {
	kind byte
	data []byte
}

func seeds() []seed {
	now := storetest.Start
	numbers := func(n ...int64) (b []byte) {
		for _, n := range n {
			b = binary.BigEndian.AppendUint64(b, uint64(n))
		}
		return b
	}
	text := func(n ...int64) (b []byte) {
		for _, n := range n {
			b = fmt.Appendf(b, "%d,", n)
		}
		return b
	}
	floats := func(n ...float64) (b []byte) {
		for _, n := range n {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(n))
		}
		return b
	}
	const day = 86400e6
	return []seed{
		{0, nil},
		{0, []byte("hello")},
		{0, bytes.Repeat([]byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 3)},
		{0, bytes.Repeat([]byte{0xff}, 24)},
		{0, numbers(now, 3, now)},
		{0, numbers(now-1e6, 1<<52, now)},
		{0, numbers(0, 1<<52, now+day)},
		{0, numbers(now+day, 4, now+day)},
		{0, numbers(now+day+1, 4, 4)},
		{1, []byte("a,b,,inf,nan,1e300,-1")},
		{1, text(now-2, now-1, now)},
		{1, text(now+day, now+day, now+day, now+day, now+day, now+day)},
		{1, fmt.Appendf(nil, "%d 0 4,%d 4 4,%d 4 4", now-2, now-1, now)},
		{1, fmt.Appendf(nil, "%d,%d 0 3,%d 1 2,%d 9 0", now-2, now-1, now-1, now)},
		{1, fmt.Appendf(nil, "%d 9 0,%d 7 1,%d 4503599627370495 3", now-2, now-1, now)},
		{1, fmt.Appendf(nil, "%d,%d 4503599627370496 5,%d 1,%d 1 2 3", now, now-1, now, now-100)},
		{1, text(now, now-1, now+day, now-2, now-1e15, now-3)},
		{2, floats(math.Inf(1), math.Inf(-1), -5, 8e15)},
		{2, floats(float64(now)+day, float64(now)+day, float64(now)+1, float64(now)+0.5)},
		{3, []byte("a,b")},
	}
}

// put writes data as one of Redis's types.
func put(ctx context.Context, c *redis.Client, key string, kind byte, data []byte) error {
	switch kind % 4 {
	case 0:
		return c.Set(ctx, key, data, 0).Err()
	case 1:
		var items []any
		for item := range bytes.SplitSeq(data, []byte(",")) {
			items = append(items, item)
		}
		return c.RPush(ctx, key, items...).Err()
	case 2:
		members := []redis.Z{{Member: "first"}}
		for chunk := range slices.Chunk(data[:len(data)/8*8], 8) {
			// A fraction of a microsecond leads to impossible waits.
			score := math.Floor(math.Float64frombits(binary.BigEndian.Uint64(chunk)))
			if !math.IsNaN(score) {
				members = append(members, redis.Z{Score: score, Member: fmt.Sprint(len(members))})
			}
		}
		return c.ZAdd(ctx, key, members...).Err()
	}
	return c.HSet(ctx, key, "field", data).Err()
}
