package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestSharedCalls: what many requests ask in one call is decided as if they had come one
// after the other: also where they ask the same and are decided in one step, where keys
// meet in other groups, and where checks stand apart. Half of the calls are plain ones.
func TestSharedCalls(t *testing.T) {
	t.Parallel()
	const clock = "clock"
	server := redistest.Start(t)
	s, err := NewWithClock(Options{Address: server.Addr(), Timeout: 10 * time.Second, DenyCache: -1}, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	now := int64(storetest.Start)
	memory, err := memorystore.New(memorystore.Options{Now: func() int64 { return now }, SweepInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() })

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rules := sharedRules(t)
	merged, plain, shared := 0, 0, 0
	for round := range 3000 {
		now += random.Int64N(400_000)
		if err := server.Admin().Set(context.Background(), clock, now, 0).Err(); err != nil {
			t.Fatal(err)
		}
		c := newCall()
		asked := make(map[*question][]store.Check)
		for range 1 + random.IntN(40) {
			checks := drawChecks(random, rules, round+random.IntN(2))
			if round%2 > 0 {
				checks = drawPlain(random, rules)
			}
			q := newQuestion()
			if err := q.ask(s, checks, new(settled)); err != nil {
				t.Fatal(err)
			}
			asked[q] = checks
			c.add(q)
		}
		if err := s.topology.(single).only.run(context.Background(), c); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if c.plain {
			plain++
			shared += len(c.questions) - len(c.units)
		}
		for i := range c.units {
			u := &c.units[i]
			merged += len(u.askers) - 1
			for _, a := range u.askers {
				compare(t, memory, a, asked[a.question], len(u.items))
			}
		}
		c.free()
	}
	if merged < 1000 || plain < 500 || shared < 1000 {
		t.Errorf("only %d requests were decided with others, %d of them in %d plain calls", merged, shared, plain)
	}
}

// sharedRules are of every algorithm but concurrency, which needs names and real time.
func sharedRules(t *testing.T) (rules []*store.Rule) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue
		}
		for _, events := range []int64{1, 7, 30} {
			limit := algorithms.Limit{Events: events, Window: time.Second}
			rules = append(rules, storetest.Rule(t, fmt.Sprint(name, events), name, limit))
		}
	}
	queue := algorithms.Limit{Events: 9, Window: time.Second, Mode: algorithms.ModeQueue, MaxWait: 400 * time.Millisecond}
	interval := algorithms.Limit{Events: 5, Window: time.Second, Refill: algorithms.RefillInterval, Burst: 8}
	day := algorithms.Limit{Events: 2000, Calendar: algorithms.Day}
	return append(rules,
		storetest.Rule(t, "queue", "leaky_bucket", queue),
		storetest.Rule(t, "interval", "token_bucket", interval),
		storetest.Rule(t, "day", "fixed_window", day))
}

// drawChecks are those of one request; few keys, so that requests meet.
func drawChecks(random *rand.Rand, rules []*store.Rule, first int) (checks []store.Check) {
	for i := range 1 + random.IntN(3) {
		checks = append(checks, store.Check{
			Rule:        rules[(first+i*5)%len(rules)],
			Key:         strings.Repeat("k", random.IntN(2)),
			Cost:        []int64{0, 1, 1, 1, 1, 1, 1, 3}[random.IntN(8)],
			Independent: random.IntN(12) == 0,
		})
	}
	return checks
}

// drawPlain are those of one of 60 clients, each of which has rules of Counters and a cost
// that are always the same. Every other one comes from three of them.
func drawPlain(random *rand.Rand, rules []*store.Rule) (checks []store.Check) {
	client := random.IntN(3 + 57*random.IntN(2))
	for i := range len(rules) {
		rule := rules[(client+i*5)%len(rules)]
		if counts(rule) && len(checks) < 1+client%3 {
			checks = append(checks, store.Check{
				Rule: rule,
				Key:  fmt.Sprint("client", client),
				Cost: []int64{1, 1, 1, 0, 3}[client%5],
			})
		}
	}
	return checks
}

// compare asks the memory store for a group of a question, and compares the decisions.
func compare(t *testing.T, memory *memorystore.Store, a asker, checks []store.Check, n int) {
	t.Helper()
	var group []store.Check
	for _, i := range a.items[a.first : a.first+n] {
		check := checks[i.index]
		check.Independent = false
		group = append(group, check)
	}
	want := make([]algorithms.Decision, n)
	if err := memory.Take(context.Background(), group, want); err != nil {
		t.Fatal(err)
	}
	for i := range group {
		if got := a.decisions[a.items[a.first+i].index]; got != want[i] {
			t.Fatalf("%s %v, cost %d:\n got %+v\nwant %+v", group[i].Rule.Algorithm().Name(), group[i].Rule.Limit(), group[i].Cost, got, want[i])
		}
	}
}
