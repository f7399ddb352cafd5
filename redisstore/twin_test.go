package redisstore_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestGoEqualsLua runs random schedules of random limits and costs through the memory
// store, which runs the Go algorithms, and through the Redis store, which runs their
// Lua twins, and compares every field of every decision. TWIN_STEPS sets the number of
// steps for each algorithm.
func TestGoEqualsLua(t *testing.T) {
	steps := 12_000
	if text := os.Getenv("TWIN_STEPS"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	server := redistest.Start(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			pair := newPair(t, server)
			done, run := 0, 0
			for done < steps {
				rapid.Check(t, func(rt *rapid.T) {
					run++
					done += pair.schedule(rt, name, strconv.Itoa(run))
				})
			}
			t.Logf("%d steps in %d schedules", done, run)
		})
	}
}

// pair is the same store twice: one in Go, one in Lua.
type pair struct {
	memory *memorystore.Store
	redis  *redisstore.Store
	now    atomic.Int64
	setNow func(int64)
}

func newPair(t *testing.T, server *redistest.Server) *pair {
	p := new(pair)
	p.redis, p.setNow = openWithClock(t, server)
	var err error
	p.memory, err = memorystore.New(memorystore.Options{Now: p.now.Load, SweepInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.memory.Close() })
	return p
}

// schedule draws one limit and a run of requests, and returns how many there were.
func (p *pair) schedule(t *rapid.T, algorithm, key string) int {
	limit := drawLimit(t, algorithm)
	now := storetest.Start + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	var last algorithms.Decision
	steps := rapid.IntRange(30, 90).Draw(t, "steps")
	for i := range steps {
		if rapid.IntRange(0, 19).Draw(t, "change") == 0 {
			limit = drawLimit(t, algorithm)
		}
		now = max(now+drawGap(t, limit, last), storetest.Start-1e12)
		p.now.Store(now)
		p.setNow(now)

		r := rule(t, algorithm, limit)
		checks := []store.Check{{Rule: r, Key: key, Cost: drawCost(t, limit, last)}}
		var inGo, inLua [1]algorithms.Decision
		if err := p.memory.Take(context.Background(), checks, inGo[:]); err != nil {
			t.Fatalf("memory: %v", err)
		}
		if err := p.redis.Take(context.Background(), checks, inLua[:]); err != nil {
			t.Fatalf("redis: %v", err)
		}
		if inGo != inLua {
			t.Fatalf("step %d at %d: %+v, cost %d:\n  Go  %+v\n  Lua %+v", i, now, limit, checks[0].Cost, inGo[0], inLua[0])
		}
		last = inGo[0]
	}
	return steps
}

// drawLimit draws limits from one event in ten years to 10^12, with bursts around and
// far from the events.
func drawLimit(t *rapid.T, algorithm string) algorithms.Limit {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	for {
		l := algorithms.Limit{
			Events: rapid.OneOf(
				rapid.Int64Range(0, 12),
				rapid.Int64Range(1, 1000),
				rapid.Int64Range(1, 1_000_000_000),
				rapid.Int64Range(1, algorithms.MaxEvents),
			).Draw(t, "events"),
			Window: time.Duration(rapid.OneOf(
				rapid.SampledFrom([]int64{1e3, 1e6, 60e6, 3600e6, 86400e6, 365 * 86400e6}),
				rapid.Int64Range(1000, 10e6),
				rapid.Int64Range(1000, algorithms.MaxWindow.Microseconds()),
			).Draw(t, "window")) * time.Microsecond,
		}
		if algorithm == "token_bucket" && rapid.Bool().Draw(t, "bursty") {
			l.Burst = rapid.OneOf(
				rapid.Int64Range(1, 20),
				rapid.Int64Range(1, 3*l.Events+1),
				rapid.Int64Range(1, algorithms.MaxEvents/1000),
			).Draw(t, "burst")
			l.Burst = min(l.Burst, algorithms.MaxEvents)
		}
		if _, err := a.Prepare(l); err == nil {
			return l
		}
	}
}

// drawGap draws the time to the next request: ties, instants around those that the
// last decision named, idle times, and steps back.
func drawGap(t *rapid.T, l algorithms.Limit, last algorithms.Decision) int64 {
	window := l.Window.Microseconds()
	named := []int64{last.NextAfter.Microseconds(), last.ResetAfter.Microseconds(), window}
	if !last.Allowed && last.RetryAfter != algorithms.Never {
		named = append(named, last.RetryAfter.Microseconds())
	}
	switch rapid.IntRange(0, 9).Draw(t, "gap") {
	case 0, 1:
		return 0
	case 2, 3:
		return rapid.Int64Range(0, 2*window/max(1, l.Events)+2).Draw(t, "interval")
	case 4, 5, 6:
		return rapid.SampledFrom(named).Draw(t, "named") + rapid.Int64Range(-1, 1).Draw(t, "off by")
	case 7:
		return rapid.Int64Range(0, window).Draw(t, "within")
	case 8:
		return rapid.Int64Range(0, 5*window).Draw(t, "idle")
	default:
		return -rapid.OneOf(rapid.Int64Range(0, 1e6), rapid.Int64Range(0, 100*3600e6)).Draw(t, "back")
	}
}

// drawCost draws costs around what is left and what there is. A log writes each unit,
// so its costs stay small.
func drawCost(t *rapid.T, l algorithms.Limit, last algorithms.Decision) int64 {
	quota := max(l.Events, l.Burst)
	cost := rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, 1, 1, 1, 2, 3, 7}),
		rapid.Int64Range(last.Remaining-1, last.Remaining+1),
		rapid.Int64Range(0, quota+1),
		rapid.Just(algorithms.MaxEvents),
	).Draw(t, "cost")
	if cost > 20_000 && cost <= quota {
		cost = min(cost, 1+cost%20_000)
		if l.Burst > 0 || l.Events > algorithms.MaxLogEvents {
			cost = quota - cost // large costs are for algorithms of numbers
		}
	}
	return max(0, cost)
}

func rule(t *rapid.T, algorithm string, limit algorithms.Limit) *store.Rule {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.NewRule("zone", a, limit, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
