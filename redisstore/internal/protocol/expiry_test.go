package protocol

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestExpiriesAreKept charges keys whose clock goes on, jumps and goes back. The second in a state
// is never before the state is worth nothing, Redis keeps the key until then, and a new expiry is
// set only if the old one does not suffice.
func TestExpiriesAreKept(t *testing.T) {
	t.Parallel()
	const clock, margin = "expiries:clock", time.Second
	server := redistest.Shared(t)
	admin, ctx := server.Admin(), context.Background()
	script := NewScript(redistest.Clock("{ 0, redis.call('GET', '"+clock+"') }", margin))
	random := rand.New(rand.NewPCG(deep.Seed(1), 0))
	for _, name := range algorithms.Names() {
		a, _ := algorithms.Get(name)
		if _, counts := a.(algorithms.Counter); !counts {
			continue
		}
		rule := storetest.Rule(t, name, name, algorithms.Limit{Events: 1000, Window: 100 * time.Minute})
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		key, now, kept, moved := stateKey(&c), int64(storetest.Start), 0, 0
		var lives int64
		var expires time.Duration
		for i := range 200 {
			now += random.Int64N(20e6)
			switch jump := random.IntN(40); {
			case jump == 0, i == 100: // at least once
				now += 200 * time.Minute.Microseconds()
			case jump == 1:
				now -= time.Minute.Microseconds()
			}
			if err := admin.Set(ctx, clock, now, 0).Err(); err != nil {
				t.Fatal(err)
			}
			b, r := NewBatch(), request([]store.Check{c}, now)
			b.Add(r)
			begun := serverTime(t, admin)
			if err := send(admin, script, b); err != nil {
				t.Fatal(err)
			}
			value, d := admin.Get(ctx, key).Val(), r.Decisions[0]
			if len(value) != stateSize || !d.Allowed {
				t.Fatalf("%q after %+v", value, d)
			}
			before := expires
			was := lives
			lives, expires = int64(binary.BigEndian.Uint32([]byte(value[32:]))), admin.PExpireTime(ctx, key).Val()
			if until := now + d.ResetAfter.Microseconds() + margin.Microseconds(); lives*1e6 < until {
				t.Fatalf("%s: at %d, the key lives until %d, and counts until %d", name, now, lives*1e6, until)
			}
			if lives == was {
				if kept++; expires != before {
					t.Fatalf("%s: the expiry was moved from %v to %v", name, before, expires)
				}
				continue
			}
			moved++
			if need := (now+d.ResetAfter.Microseconds())/1e6 + 2; was >= need {
				t.Errorf("%s: the expiry %d sufficed for %d", name, was, need)
			}
			life := time.Duration(lives-now/1e6) * time.Second
			if expires < begun+life-time.Millisecond || expires > serverTime(t, admin)+life {
				t.Fatalf("%s: expires at %v, want %v later than %v", name, expires, life, begun)
			}
		}
		if kept < 100 || moved < 2 {
			t.Errorf("%s: kept %d times, moved %d times", name, kept, moved)
		}
	}
}

// serverTime is the time of Redis, by which keys expire, since 1970.
func serverTime(t *testing.T, admin *redis.Client) time.Duration {
	t.Helper()
	now, err := admin.Time(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.UnixNano())
}
