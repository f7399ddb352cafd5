//go:build deep

package protocol

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestBatchesOfLentKeys draws batches as TestBatches does, while parts of some keys are lent, also for
// a Redis that is full. Groups with such a key are not decided, their requests learn so, and no
// state of such a key changes. All other groups are decided as if there were no such groups.
func TestBatchesOfLentKeys(t *testing.T) {
	t.Parallel()
	const clock = "clock"
	server := redistest.Start(t)
	admin, ctx := server.Admin(), context.Background()
	script := NewScript(redistest.KeyClock(clock))
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
	book := string(lend.Book{{Borrower: 7, Number: 1, Spent: 2, Held: 3, Ends: now + 1e6}, {Borrower: 9, Held: 1, Ends: now + 2e6}}.Append(nil))
	lent := make(map[string]string) // the states of those keys of which parts are lent; empty of others
	touches := func(g *group) bool {
		return slices.ContainsFunc(g.ops, func(o Op) bool { return lent[o.Key] != "" })
	}
	undecided, decided := 0, 0
	rounds := deep.Steps(1500, 30_000)
	for round := 0; round < rounds || min(undecided, decided) < 500 && round < 10*rounds; round++ {
		now += random.Int64N(400_000)
		server.Configure("maxmemory", "0")
		if err := admin.Set(ctx, clock, now, 0).Err(); err != nil {
			t.Fatal(err)
		}
		b := NewBatch()
		asked := make(map[*Request][]store.Check)
		for range 1 + random.IntN(20)*random.IntN(2) {
			checks := drawChecks(random, rules, round+random.IntN(2))
			if round%2 > 0 {
				checks = drawCounters(random, rules)
			}
			r := request(checks, now)
			for i := range r.Ops {
				o := &r.Ops[i]
				if _, known := lent[o.Key]; known {
					continue
				}
				if lent[o.Key] = ""; random.IntN(8) > 0 {
					continue
				}
				if isCounter(o.Rule.Algorithm()) {
					err = admin.Set(ctx, o.Key, strings.Repeat("\x00", stateSize)+book, 0).Err()
				} else {
					err = admin.RPush(ctx, o.Key, now-1, "L"+book).Err()
				}
				if err != nil {
					t.Fatal(err)
				}
				lent[o.Key] = admin.Dump(ctx, o.Key).Val()
			}
			asked[r] = checks
			b.Add(r)
		}
		if random.IntN(4) == 0 {
			server.Configure("maxmemory", "1")
		}
		if err := send(admin, script, b); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i := range b.groups {
			g := &b.groups[i]
			for _, w := range g.waiters {
				switch {
				case touches(g):
					undecided++
					if !errors.Is(w.Err, ErrLent) && !IsUnwritten(w.Err) || g.uncharged { // another group may be uncharged
						t.Fatalf("round %d: %+v is told %v", round, g.ops, w.Err)
					}
				case !g.uncharged:
					decided++
					compare(t, memory, w, asked[w.Request], len(g.ops))
				}
			}
		}
	}
	for key, state := range lent {
		if state != "" && admin.Dump(ctx, key).Val() != state {
			t.Errorf("the state of %s has changed", key)
		}
	}
	if undecided < 500 || decided < 500 {
		t.Errorf("%d undecided, %d decided", undecided, decided)
	}
}

// TestAdjustmentOfALentKey: take.lua changes no charge of a key of which parts are lent, and keeps its book.
func TestAdjustmentOfALentKey(t *testing.T) {
	t.Parallel()
	admin, ctx := redistest.Start(t).Admin(), context.Background()
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
	state := strings.Repeat("\x00", stateSize) + string(lend.Book{{Borrower: 7, Number: 1, Held: 3, Ends: storetest.Start}}.Append(nil))
	if err := admin.Set(ctx, "k", state, 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, delta := range []int64{-1, 5} {
		r, b := ask(rule, Adjust, EncodeAdjustment(&store.Adjustment{At: storetest.Start, Delta: delta}))
		if err := send(admin, NewScript(nil), b); err != nil || r.Decisions[0].Quota != 0 {
			t.Errorf("%+d: %v, %+v", delta, err, r.Decisions[0])
		}
	}
	if now := admin.Get(ctx, "k").Val(); now != state {
		t.Errorf("%q was %q", now, state)
	}
}
