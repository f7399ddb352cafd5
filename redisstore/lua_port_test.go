package redisstore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestGoEqualsLua runs random schedules of random limits, costs and adjustments through the
// memory store, which runs the Go algorithms, and through the Redis store, which runs their Lua
// ports, and compares every field of every decision.
func TestGoEqualsLua(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			pair := newPair(t, server)
			lua := newRedisSide(pair.redis)
			run := 0
			deep.Check(t, deep.Racing(250, 1000), 100_000, func(rt *rapid.T) int {
				run++
				return pair.schedule(rt, lua, name, strconv.Itoa(run))
			})
		})
	}
}

// pair is the same store twice: one in Go, and one in Lua if there is a server.
type pair struct {
	t      *testing.T
	memory *memorystore.Store
	redis  *redisstore.Store

	redisServer *redistest.Server

	now, today atomic.Int64
	setNow     func(int64)
}

func newPair(t *testing.T, server *redistest.Server) *pair {
	p := &pair{t: t, redisServer: server, setNow: func(int64) {}}
	if server != nil {
		p.redis, p.setNow = openWithClock(t, server)
		p.redis.SetToday(p.today.Load)
	}
	p.openMemory()
	return p
}

func (p *pair) openMemory() {
	var err error
	p.memory, err = memorystore.New(memorystore.Options{Now: p.now.Load, SweepInterval: time.Hour})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.memory.Close() })
}

// set sets all clocks. The skew is the difference between this process's idea of the date and
// Redis's.
func (p *pair) set(now, skew int64) {
	p.now.Store(now)
	p.today.Store(now + skew)
	p.setNow(now)
}

// schedule draws one limit and a run of requests, and returns how many there were.
func (p *pair) schedule(t *rapid.T, lua side, algorithm, key string) int {
	limit := drawUnrenewed(t, algorithm)
	var charged []store.Adjustment
	now := storetest.Start + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	var last algorithms.Decision
	steps := rapid.IntRange(30, 90).Draw(t, "steps")
	for i := range steps {
		if rapid.IntRange(0, 19).Draw(t, "change") == 0 {
			limit = drawUnrenewed(t, algorithm)
		}
		now = min(max(now+drawGap(t, limit, last), storetest.Start-1e12), latest)
		p.set(now, 0)
		if len(charged) > 0 && rapid.IntRange(0, 4).Draw(t, "do") == 0 {
			c := drawAdjustment(t, charged, limit, last)
			p.memory.Adjust(c)
			lua.adjust(t, c)
		}

		r := rule(t, algorithm, limit)
		checks := []store.Check{{Rule: r, Key: key, Cost: drawCost(t, limit, last), LeaseID: storetest.LeaseID(r)}}
		var inGo, inLua [1]algorithms.Decision
		if err := p.memory.Take(context.Background(), checks, inGo[:]); err != nil {
			t.Fatalf("memory: %v", err)
		}
		if err := p.redis.Take(context.Background(), checks, inLua[:]); err != nil {
			t.Fatalf("redis: %v", err)
		}
		if inGo[0].Allowed && checks[0].Cost > 0 {
			charged = append(charged, store.Adjustment{Check: checks[0], At: inGo[0].Booked(), Turn: inGo[0].Turn()})
		}
		if inGo != inLua {
			t.Fatalf("step %d at %d: %+v, cost %d:\n  Go  %+v\n  Lua %+v", i, now, limit, checks[0].Cost, inGo[0], inLua[0])
		}
		last = inGo[0]
	}
	for _, c := range charged {
		c.Delta = -c.Cost
		p.memory.Adjust(c) // otherwise it would be renewed while other schedules run
	}
	return steps
}

// drawAdjustment draws any change of any charge, under the limit that charged it or the one in
// force, if both count in the same state.
func drawAdjustment(t *rapid.T, charged []store.Adjustment, limit algorithms.Limit, last algorithms.Decision) store.Adjustment {
	c := charged[len(charged)-1]
	if rapid.Bool().Draw(t, "older") {
		c = rapid.SampledFrom(charged).Draw(t, "charge")
	}
	made := rule(t, c.Rule.Algorithm().Name(), limit)
	if made.ID() == c.Rule.ID() && rapid.Bool().Draw(t, "by the limit in force") {
		c.Rule = made
	}
	c.Delta = -c.Cost
	switch rapid.IntRange(0, 3).Draw(t, "how much") {
	case 0:
		c.Delta = -max(1, drawCost(t, limit, last))
	case 1:
		c.Delta = max(1, drawCost(t, limit, last))
	}
	return c
}

// drawUnrenewed draws limits with leases that no store renews by itself before a schedule is
// over, because it would do so by a clock that tests do not set.
func drawUnrenewed(t *rapid.T, algorithm string) algorithms.Limit {
	l := drawLimit(t, algorithm)
	if algorithm == "concurrency" {
		l.Lease = max(l.Lease, longLease)
	}
	return l
}
