//go:build deep

package protocol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestBatchesOfAFullRedis draws batches as TestBatches does, for a Redis that is full, or that
// may not write, for a while. What needs no write is decided as by a healthy store, and nothing is written: what would be
// charged fails.
func TestBatchesOfAFullRedis(t *testing.T) {
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
	random := rand.New(rand.NewPCG(deep.Seed(1), 0))
	rules := sharedRules(t)
	const (
		well = iota
		full
		unable
		states
	)
	rounds := 3000
	state := well
	var charged, uncharged, refused [states]int
	for round := range rounds {
		if round%10 == 0 {
			server.Configure("maxmemory", "0")
			server.Configure("min-replicas-to-write", "0")
			now += random.Int64N(400_000)
			if err := admin.Set(ctx, clock, now, 0).Err(); err != nil {
				t.Fatal(err)
			}
			state = random.IntN(states)
			switch state {
			case full:
				server.Configure("maxmemory", "1")
			case unable:
				server.Configure("min-replicas-to-write", "1")
			}
		}
		keys := admin.DBSize(ctx).Val()
		b := NewBatch()
		asked := make(map[*Request][]store.Check)
		for range 1 + random.IntN(20) {
			checks := drawChecks(random, rules, round+random.IntN(2))
			for i := range checks {
				checks[i].Key = fmt.Sprint(checks[i].Key, random.IntN(1+20*round/rounds))
			}
			if round%2 > 0 {
				checks = drawCounters(random, rules)
			}
			r := request(checks, now)
			asked[r] = checks
			b.Add(r)
		}
		if err := send(admin, script, b); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if b.Careful() && state == well {
			t.Fatalf("round %d: a call was made with care", round)
		}
		for i := range b.groups {
			g := &b.groups[i]
			for _, w := range g.waiters {
				if b.Careful() && w.charges(w.Ops[w.first:w.first+len(g.ops)]) {
					uncharged[state]++
					d := &w.Decisions[w.Ops[w.first].Index]
					if w.Err == nil && (!w.Ops[w.first].Alone || w.AllAlone || !d.Uncharged) ||
						w.Err != nil && (errors.Is(w.Err, store.ErrFull) != (state == full) || !IsUnwritten(w.Err)) {
						t.Fatalf("round %d: %v is told %v", round, g.ops, w.Err)
					}
					continue
				}
				compare(t, memory, w, asked[w.Request], len(g.ops))
				if d := &w.Decisions[w.Ops[w.first].Index]; d.Allowed {
					charged[state]++
				} else {
					refused[state]++
				}
			}
		}
		if n := admin.DBSize(ctx).Val(); state != well && n > keys {
			t.Fatalf("round %d: there were %d keys, and are %d", round, keys, n)
		}
	}
	t.Logf("well, full, unable: charged or asked at no cost %d, not charged %d, refused %d", charged, uncharged, refused)
	for state := range states {
		if charged[state] < rounds/20 || refused[state] < rounds/10 || (uncharged[state] > rounds/10) != (state != well) {
			t.Errorf("state %d: too few", state)
		}
	}
}
