//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// move takes a slot through all states of its migration to another node and back, and runs a test in
// each state, which knows whether the slot moves.
func move(t *testing.T, c *redistest.Cluster, key string, test func(t *testing.T, moves bool)) {
	from, to := c.MasterOf(key), c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	run := func(name string, moves bool) { t.Run(name, func(t *testing.T) { test(t, moves) }) }
	run("before", false)
	for _, way := range []string{"migrating", "migrating back"} {
		m := c.StartMove(c.SlotOf(key), from, to)
		run(way+", all keys here", true)
		m.MoveKeys()
		run(way+", all keys there", true)
		run(way+", keys at both", true)
		m.Finish()
		run(way+", arrived", false)
		from, to = to, from
	}
}

// TestKeyRulesHoldWhileASlotMoves: bans, exemptions and limits of overrides hold before and after a slot is moved. While
// it moves, they hold too, or the call fails, because its keys are at two nodes. What asks for one key is decided all the time.
func TestKeyRulesHoldWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
	ctx := context.Background()
	for _, name := range algorithms.Names() {
		limit := algorithms.Limit{Events: 1, Window: 1000 * time.Hour}
		if name == "concurrency" {
			limit = algorithms.Limit{Events: 1, Lease: time.Hour}
		}
		rule := storetest.Rule(t, name, name, limit)
		check := store.Check{Rule: rule, Key: "client " + name, Cost: 1, KeyRules: &store.KeyRules{
			Overrides: true, Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Hour},
		}}
		beside := store.Check{Rule: storetest.Rule(t, "beside "+name, "token_bucket", algorithms.Limit{Events: 1e6, Window: time.Hour}), Key: check.Key, Cost: 1}
		set := func(t *testing.T, override store.Override) {
			t.Helper()
			if err := s.Reset(ctx, rule, check.Key); err != nil {
				t.Fatal(err)
			}
			if err := s.SetRule(ctx, rule, store.Selector{Key: check.Key}, override); err != nil {
				t.Fatal(err)
			}
		}
		moves := false
		decide := func(t *testing.T, want string) {
			t.Helper()
			if d := ask(t, s, beside); !d[0].Allowed {
				t.Errorf("one key: %+v", d[0])
			}
			d := make([]algorithms.Decision, 2)
			err := s.Take(ctx, []store.Check{named(check), beside}, d)
			if moves && store.Failure(err) == store.FailureCluster {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := "refused"
			switch {
			case d[0].Exempt:
				got = "exempt"
			case d[0].BanBegins:
				got = "a ban begins"
			case d[0].Banned:
				got = "banned"
			case d[0].Allowed && d[0].Override != "":
				got = "allowed by its own"
			case d[0].Allowed:
				got = "allowed"
			case d[0].Override != "":
				got = "refused by its own"
			}
			if got != want {
				t.Errorf("%s, want %s: %+v", got, want, d[0])
			}
		}
		t.Run(name, func(t *testing.T) {
			move(t, c, s.Key(rule, check.Key), func(t *testing.T, now bool) {
				moves = now
				set(t, store.Override{Kind: store.KindBanned, For: time.Hour})
				for range 3 {
					decide(t, "banned")
				}
				set(t, store.Override{Kind: store.KindBanned})
				decide(t, "banned")
				set(t, store.Override{Kind: store.KindExempt})
				for range 3 {
					decide(t, "exempt")
				}
				if moves {
					return // what counts depends on how many calls have failed
				}
				own := limit
				if own.Events = 3; name != "concurrency" {
					own.Window = 48 * time.Hour // whose state is another one
				}
				set(t, store.Override{Kind: store.KindLimit, Limit: own})
				for range 3 {
					decide(t, "allowed by its own")
				}
				decide(t, "refused by its own")
				set(t, store.Override{})
				decide(t, "allowed")
				decide(t, "refused")
				decide(t, "refused")
				decide(t, "a ban begins")
				decide(t, "banned")
				if err := s.Unban(ctx, rule, store.Selector{Key: check.Key}); err != nil {
					t.Fatal(err)
				}
				decide(t, "refused")
			})
		})
	}
}
