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
		return pair.both(t, store.Check{Rule: rule, Key: key}).Remaining
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

// both has both stores decide a check, and demands that they say the same.
func (p *pair) both(t *testing.T, c store.Check) algorithms.Decision {
	t.Helper()
	inLua, inGo := storeSide{p.redis.Direct()}.take(t, c), storeSide{p.memory}.take(t, c)
	if inLua != inGo {
		t.Fatalf("%s: Lua %+v, Go %+v", c.Key, inLua, inGo)
	}
	return inGo
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
	must(t, p.redisServer.Admin().RPush(ctx, p.redis.Key(rule, key), charges...).Err())
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
	both := func(cost int64) {
		t.Helper()
		pair.both(t, store.Check{Rule: rule, Key: "client", Cost: cost})
	}
	storeSide{pair.memory}.take(t, store.Check{Rule: rule, Key: "client", Cost: 20})
	key := pair.redis.Key(rule, "client")
	must(t, server.Admin().RPush(context.Background(), key, fmt.Sprintf("%d %d %d", now, int64(1<<52-40), int64(1<<52-21))).Err())
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
	must(t, err)
	if fields := strings.Fields(newest); len(fields) != 3 || len(fields[2]) > 5 {
		t.Errorf("the newest charge is %q, want small sums", newest)
	}
}

// TestLateCostOnItsWay: a late cost that Redis carries out only when it would not count any more, as after a hang, does
// not use up what came later. One that is in time counts, or that became known later.
func TestLateCostOnItsWay(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s, setNow := openWithClock(t, server)
	now, lua := storetest.Start, newRedisSide(s) // a quarter of a second into a minute
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue
		}
		for _, rule := range storetest.Kinds(t, name, 10, time.Minute) {
			for _, c := range []struct {
				known, arrives time.Duration
				counts         bool
			}{
				{time.Second, 2 * time.Second, true},
				{time.Second, 26 * time.Hour, false},
				{25 * time.Hour, 26 * time.Hour, rule.Limit().Calendar != 0},
				{26 * time.Hour, 26 * time.Hour, true},
				{27 * time.Hour, 26 * time.Hour, true}, // it came faster than it was measured
				{0, 26 * time.Hour, true},              // not known
			} {
				setNow(now)
				check := store.Check{Rule: rule, Key: "client", Cost: 1}
				d := lua.take(t, check)
				now += c.arrives.Microseconds()
				setNow(now)
				check.Cost = 0
				before := lua.take(t, check).Remaining
				late := store.Adjustment{Check: check, At: d.Booked(), Turn: d.Turn(), Delta: 5, Known: c.known}
				lua.adjust(t, late)
				if counted := before-lua.take(t, check).Remaining == 5; counted != c.counts {
					t.Errorf("%s: known after %v, carried out after %v: counted: %v", rule.ID(), c.known, c.arrives, counted)
				}
				must(t, s.Reset(t.Context(), rule, "client"))
				now += (48*time.Hour - c.arrives).Microseconds()
			}
		}
	}
}

// TestWhatBeganAnewGivesNothingBack: however a key became new while a request runs, what the request has cost is not
// given back of what others have been charged since. A cost that is known later counts.
func TestWhatBeganAnewGivesNothingBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Shared(t)
	s, setNow := openWithClock(t, server)
	now, lua := storetest.Start, newRedisSide(s)
	wait := func() {
		now += time.Second.Microseconds()
		setNow(now)
	}
	ways := map[string]func(rule *store.Rule) error{
		"reset":   func(rule *store.Rule) error { return s.Reset(ctx, rule, "client") },
		"evicted": func(rule *store.Rule) error { return server.Admin().Del(ctx, s.Key(rule, "client")).Err() },
		"damaged": func(rule *store.Rule) error {
			return server.Admin().Set(ctx, s.Key(rule, "client"), "of another program", time.Hour).Err()
		},
	}
	for _, name := range algorithms.Names() {
		for _, rule := range storetest.Kinds(t, name, 10, time.Hour) {
			for way, renew := range ways {
				charge := func() store.Adjustment {
					t.Helper()
					c := store.Check{Rule: rule, Key: "client", Cost: 10, LeaseID: storetest.LeaseID(rule)}
					d := lua.take(t, c)
					if !d.Allowed {
						t.Fatalf("%s, %s: %+v", rule.ID(), way, d)
					}
					wait()
					return store.GiveBack(&c, &d)
				}
				left := func() int64 {
					return lua.take(t, store.Check{Rule: rule, Key: "client", LeaseID: storetest.LeaseID(rule)}).Remaining
				}
				old := charge()
				anew := func() {
					must(t, renew(rule))
					wait()
				}
				anew()
				made := charge()
				if lua.adjust(t, old); left() > 0 {
					t.Errorf("%s, %s: %d are left after a refund from before", rule.ID(), way, left())
				}
				if lua.adjust(t, made); left() != 10 {
					t.Errorf("%s, %s: %d are left after another refund", rule.ID(), way, left())
				}
				if name == "concurrency" {
					continue
				}
				anew()
				made.Delta = 3
				if lua.adjust(t, made); left() != 7 {
					t.Errorf("%s, %s: %d are left after a late cost", rule.ID(), way, left())
				}
				must(t, s.Reset(ctx, rule, "client"))
			}
		}
	}
}
