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
// each state.
func move(t *testing.T, c *redistest.Cluster, key string, test func(t *testing.T)) {
	from, to := c.MasterOf(key), c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	t.Run("before", test)
	for _, way := range []string{"migrating", "migrating back"} {
		m := c.StartMove(c.SlotOf(key), from, to)
		t.Run(way+", all keys here", test)
		m.MoveKeys()
		t.Run(way+", all keys there", test)
		t.Run(way+", keys at both", test)
		m.Finish()
		t.Run(way+", arrived", test)
		from, to = to, from
	}
}

// TestKeyRulesHoldWhileASlotMoves: bans, exemptions and limits of overrides hold in each state
// of a slot that is moved, and refusals count.
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
			err := s.Clear(ctx, rule, check.Key)
			if override.Kind != store.KindNone && err == nil {
				err = s.Set(ctx, rule, check.Key, override)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		decide := func(t *testing.T, want string) {
			t.Helper()
			d := ask(t, s, named(check), beside)
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
			move(t, c, s.Key(rule, check.Key), func(t *testing.T) {
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
				if err := s.Unban(ctx, rule, check.Key); err != nil {
					t.Fatal(err)
				}
				decide(t, "refused")
			})
		})
	}
}
