//go:build deep

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendZonesWhileASlotMoves: a request of several zones that lend is decided in each state of a slot that is moved,
// whether its keys have one slot or two, and no more passes than the limits allow.
func TestLendZonesWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	perHour := func(n int64) algorithms.Limit { return algorithms.Limit{Events: n, Window: 1000 * time.Hour} }
	rules := &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Hour, After: 1000, Within: time.Hour}}
	for name, with := range map[string]struct {
		other string // the key of the other zone
		rules *store.KeyRules
		plain bool // a third zone does not lend
	}{
		"one key":                      {"k", nil, false},
		"one key, rules, one without":  {"k", rules, true},
		"two slots, rules, none other": {"other", rules, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
			wide := lendingRule(t, "wide "+name, "fixed_window", perHour(200), 10*time.Second)
			narrow := lendingRule(t, "narrow "+name, "sliding_window_log", perHour(40), 10*time.Second)
			checks := []store.Check{{Rule: wide, Key: "k", Cost: 1, KeyRules: with.rules}, {Rule: narrow, Key: with.other, Cost: 1, KeyRules: with.rules}}
			if with.plain {
				plain, err := store.NewRule("plain "+name, wide.Algorithm(), perHour(200), 0)
				if err != nil {
					t.Fatal(err)
				}
				checks = append(checks, store.Check{Rule: plain, Key: "k", Cost: 1})
			}
			move(t, c, s.Key(wide, "k"), func(t *testing.T) {
				for _, c := range checks {
					if err := s.Reset(t.Context(), c.Rule, c.Key); err != nil {
						t.Fatal(err)
					}
				}
				passed, late, failed := 0, 0, make(map[string]int)
				for range 60 {
					d := make([]algorithms.Decision, len(checks))
					switch err := s.Take(t.Context(), checks, d); {
					case errors.Is(err, store.ErrBusy): // this process got no time for ten seconds, and gives back what it got
						late++
					case err != nil:
						failed[fmt.Sprint(err)]++
					case d[0].Allowed && d[1].Allowed && (!with.plain || d[2].Allowed):
						passed++
					}
				}
				if passed > 40 || passed < 40 && late == 0 || len(failed) > 0 {
					t.Errorf("%d of 60 pass, failed: %v", passed, failed)
				}
			})
		})
	}
}

// TestLendRulesWhileASlotMoves is TestKeyRulesHoldWhileASlotMoves for a key of which parts may be lent.
func TestLendRulesWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
	ctx := context.Background()
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 100, Window: 1000 * time.Hour}, time.Second)
	check := store.Check{Rule: rule, Key: "k", Cost: 1, KeyRules: &store.KeyRules{
		Overrides: true, Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Hour},
	}}
	use := func(t *testing.T, n int) (allowed, exempt, banned int) {
		t.Helper()
		for range n {
			d, err := decideOne(s, check)
			switch {
			case err != nil:
				t.Fatal(err)
			case d.Exempt:
				exempt++
			case d.Banned:
				banned++
			case d.Allowed:
				allowed++
			}
		}
		return allowed, exempt, banned
	}
	move(t, c, s.Key(rule, check.Key), func(t *testing.T) {
		for _, do := range []func() error{
			func() error { return s.Clear(ctx, rule, "k") }, func() error { return s.Reset(ctx, rule, "k") },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		if allowed, _, banned := use(t, 200); allowed != 100 || banned != 98 { // the third refusal begins the ban
			t.Errorf("%d of 200 pass, %d are banned", allowed, banned)
		}
		if err := s.Set(ctx, rule, "k", store.Override{Kind: store.KindExempt}); err != nil {
			t.Fatal(err)
		}
		if _, exempt, _ := use(t, 20); exempt != 20 {
			t.Errorf("%d of 20 are exempt", exempt)
		}
		if err := s.Unban(ctx, rule, "k"); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{120, 110} {
			limit := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: n, Window: time.Duration(n) * time.Hour}}
			if err := s.Set(ctx, rule, "k", limit); err != nil {
				t.Fatal(err)
			}
			if allowed, _, _ := use(t, 30); allowed != 30 {
				t.Errorf("%d of 30 pass by a limit of their own", allowed)
			}
			if err := s.Reset(ctx, rule, "k"); err != nil { // of what its own limit has counted
				t.Fatal(err)
			}
		}
	})
}
