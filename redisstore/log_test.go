package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestRefundsOfALongLog compares Go and Lua where a refund has to look far back: its time is
// bounded, and a refund beyond the bound is left out in both.
func TestRefundsOfALongLog(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	pair := newPair(t, server)
	lua := newRedisSide(pair.redis)
	const most = algorithms.MaxBehind + 200
	rule := storetest.Rule(t, "zone", "sliding_window_log", algorithms.Limit{Events: 10 * most, Window: time.Hour})
	peek := func(key string) int64 {
		t.Helper()
		check := store.Check{Rule: rule, Key: key}
		inLua, inGo := lua.take(t, check), storeSide{pair.memory}.take(t, check)
		if inLua != inGo {
			t.Fatalf("%s: Lua %+v, Go %+v", key, inLua, inGo)
		}
		return inGo.Remaining
	}
	for _, costs := range []struct {
		name  string
		of    func(i int) int64
		reach int // how far back refunds look
	}{
		{"one", func(int) int64 { return 1 }, algorithms.MaxBehind},
		{"more", func(i int) int64 { return 1 + int64(i%4) }, algorithms.MaxShifted},
		{"the same time", func(i int) int64 { return 1 + int64(i/5%3) }, algorithms.MaxShifted},
	} {
		t.Run(costs.name, func(t *testing.T) {
			now := func(i int) int64 {
				if costs.name == "the same time" {
					i -= i % 3
				}
				return storetest.Start + int64(i)
			}
			fillLog(t, pair, rule, costs.name, most, now, costs.of)
			pair.set(now(most), 0)
			for _, behind := range []int{1, 2, 3, 4, 7, 100, costs.reach - 7, costs.reach, costs.reach + 1, costs.reach + 150} {
				i := most - behind
				cost := costs.of(i)
				for _, part := range []int64{1, cost - 1} {
					if part == 0 {
						continue
					}
					before := peek(costs.name)
					r := store.Adjustment{Check: store.Check{Rule: rule, Key: costs.name, Cost: cost}, At: now(i), Delta: -part}
					pair.memory.Adjust(r)
					lua.adjust(t, r)
					switch back := peek(costs.name) - before; {
					case behind <= costs.reach-6 && back != part:
						t.Errorf("%d of %d back from %d charges ago, want %d", back, cost, behind, part)
					case behind > costs.reach+10 && (cost > 1 || costs.reach == algorithms.MaxBehind) && back != 0:
						t.Errorf("%d of %d back from %d charges ago, which is too far", back, cost, behind)
					}
				}
			}
			// Later, the rest leaves the window in the same order in both.
			for i := 0; i < most; i += most / 7 {
				pair.set(now(i)+rule.Limit().Window.Microseconds(), 0)
				peek(costs.name)
			}
		})
	}
}

// fillLog makes n charges in both stores.
func fillLog(t *testing.T, p *pair, rule *store.Rule, key string, n int, now func(int) int64, cost func(int) int64) {
	t.Helper()
	ctx := context.Background()
	var d [1]algorithms.Decision
	for i := range n {
		p.now.Store(now(i))
		if err := p.memory.Take(ctx, []store.Check{{Rule: rule, Key: key, Cost: cost(i)}}, d[:]); err != nil || !d[0].Allowed {
			t.Fatal(err, d[0])
		}
	}
	// Redis receives them as the script would write them, many at once: see
	// sliding_window_log.lua.
	var charges []any
	sum := int64(0)
	for i := range n {
		after := sum + cost(i) - 1
		if text := strconv.FormatInt(now(i), 10); after == 0 {
			charges = append(charges, text)
		} else {
			charges = append(charges, fmt.Sprintf("%s %d %d", text, sum, after))
		}
		sum = after
	}
	if err := p.redisServer.Admin().RPush(ctx, p.redis.Key(rule, key), charges...).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestSumsOfALogBeginAgain: a log whose client never pauses goes on counting beyond 2^52.
func TestSumsOfALogBeginAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	pair := newPair(t, server)
	lua := newRedisSide(pair.redis)
	rule := storetest.Rule(t, "zone", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Second})
	now := storetest.Start
	pair.set(now, 0)
	both := func(cost int64) algorithms.Decision {
		t.Helper()
		check := store.Check{Rule: rule, Key: "client", Cost: cost}
		inLua, inGo := lua.take(t, check), storeSide{pair.memory}.take(t, check)
		if inLua != inGo {
			t.Fatalf("Lua %+v, Go %+v", inLua, inGo)
		}
		return inGo
	}
	storeSide{pair.memory}.take(t, store.Check{Rule: rule, Key: "client", Cost: 20})
	key := pair.redis.Key(rule, "client")
	if err := server.Admin().RPush(context.Background(), key, fmt.Sprintf("%d %d %d", now, int64(1<<52-40), int64(1<<52-21))).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		now += 90_000
		pair.set(now, 0)
		both(int64(1 + i%13))
		both(50)
		if i%5 == 0 {
			r := store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 3}, At: now, Delta: -3}
			pair.memory.Adjust(r)
			lua.adjust(t, r)
			both(0)
		}
	}
	newest, err := server.Admin().LIndex(context.Background(), key, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(newest); len(fields) != 3 || len(fields[2]) > 5 {
		t.Errorf("the newest charge is %q, want small sums", newest)
	}
}
