package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
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
	deep.InTurn(t)
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
				own.Events = 3
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

// TestAdjustingWhileASlotMoves: leases are renewed, and charges are given back, also under the
// limit of an override.
func TestAdjustingWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
	ctx := context.Background()
	for _, name := range []string{"concurrency", "fixed_window", "sliding_window_log"} {
		limit := algorithms.Limit{Events: 1, Window: 1000 * time.Hour}
		if name == "concurrency" {
			limit = algorithms.Limit{Events: 1, Lease: time.Hour}
		}
		rule := storetest.Rule(t, name, name, limit)
		check := store.Check{Rule: rule, Key: "client " + name, Cost: 2, KeyRules: &store.KeyRules{Overrides: true}}
		own := limit
		own.Events = 5
		if err := s.Set(ctx, rule, check.Key, store.Override{Kind: store.KindLimit, Limit: own}); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			move(t, c, s.Key(rule, check.Key), func(t *testing.T) {
				held := named(check)
				d := ask(t, s, held)[0]
				if !d.Allowed || d.Remaining != 3 {
					t.Fatalf("%+v", d)
				}
				if name == "concurrency" {
					if err := s.Renew(held); err != nil {
						t.Errorf("renewing: %v", err)
					}
				}
				s.Adjust(store.Adjustment{Check: held, At: d.Booked(), Turn: d.Turn(), Delta: -2, Override: d.Override})
				s.Flush()
				look := check
				look.Cost = 0
				if d := ask(t, s, look)[0]; d.Remaining != 5 || s.Waiting() != 0 {
					t.Errorf("%d left of 5, %d wait: %+v", d.Remaining, s.Waiting(), d)
				}
			})
		})
	}
}

// TestOwnLimitWhileASlotMoves: the limit of an override holds where its state is not on the node
// that has the override and the rule's state.
func TestOwnLimitWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), DenyCache: -1})
	ctx := context.Background()
	for _, name := range counting {
		t.Run(name, func(t *testing.T) {
			rule := storetest.Rule(t, name, name, algorithms.Limit{Events: 9, Window: 1000 * time.Hour})
			check := store.Check{Rule: rule, Key: "own " + name, Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
			beside := store.Check{Rule: storetest.Rule(t, "beside "+name, "sliding_window_log", algorithms.Limit{Events: 1e6, Window: time.Hour}), Key: check.Key, Cost: 1}
			if !ask(t, s, check, beside)[0].Allowed {
				t.Fatal("refused by the zone's limit")
			}
			own := algorithms.Limit{Events: 3, Window: 48 * time.Hour}
			if err := s.Set(ctx, rule, check.Key, store.Override{Kind: store.KindLimit, Limit: own}); err != nil {
				t.Fatal(err)
			}
			key := s.Key(rule, check.Key)
			from, to := c.MasterOf(key), c.Nodes()[0]
			if from == to {
				to = c.Nodes()[1]
			}
			m := c.StartMove(c.SlotOf(key), from, to)
			for i := range 4 {
				if d := ask(t, s, check, beside); d[0].Allowed != (i < 3) || d[0].Override == "" {
					t.Errorf("request %d: %+v", i+1, d[0])
				}
			}
			m.MoveKeys()
			if d := ask(t, s, check, beside)[0]; d.Allowed || d.Override == "" {
				t.Errorf("with all keys there: %+v", d)
			}
			m.Finish()
			if d := ask(t, s, check, beside)[0]; d.Allowed || d.Override == "" {
				t.Errorf("arrived: %+v", d)
			}
		})
	}
}

// TestNodesNameEachOther: at the end of a slot's move its two nodes may each say for a moment that the other has
// it. Calls wait for that moment to pass: requests, adjustments and commands of operators.
func TestNodesNameEachOther(t *testing.T) {
	t.Parallel()
	const moment = 30 * time.Millisecond // less than the pauses, so all that a slow machine can do is to pass
	var until atomic.Int64
	nodes := []*faultproxy.Proxy{faultproxy.Start(t, redistest.Start(t).Addr()), faultproxy.Start(t, redistest.Start(t).Addr())}
	_, port, _ := net.SplitHostPort(nodes[0].Addr())
	for i, n := range nodes {
		other := nodes[1-i].Addr()
		n.Rewrite(func(command string, reply []byte) []byte {
			switch {
			case command == "cluster":
				return fmt.Appendf(nil, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%s\r\n", port)
			case strings.HasPrefix(command, "eval"):
				until.CompareAndSwap(0, time.Now().Add(moment).UnixNano())
				if time.Now().UnixNano() < until.Load() {
					return []byte("-MOVED 1 " + other + "\r\n")
				}
			}
			return reply
		})
	}
	s := open(t, redisstore.WithoutRenewal(redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: []string{nodes[0].Addr()}, DenyCache: -1, Timeout: time.Minute,
	}))
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 100, Window: 1000 * time.Hour})
	check := store.Check{Rule: rule, Key: "k", Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
	for _, call := range []func() error{
		func() error { return s.Take(t.Context(), []store.Check{check}, make([]algorithms.Decision, 1)) },
		func() error { return s.Set(t.Context(), rule, "k", store.Override{Kind: store.KindExempt}) },
		func() error {
			s.Adjust(store.Adjustment{Check: named(check), At: time.Now().UnixMicro(), Delta: -1})
			if s.Flush(); s.Waiting() > 0 {
				return fmt.Errorf("%d adjustments wait", s.Waiting())
			}
			return nil
		},
	} {
		until.Store(0)
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}

// TestLendRulesWhileASlotMoves is TestKeyRulesHoldWhileASlotMoves for a key of which parts may be lent.
func TestLendRulesWhileASlotMoves(t *testing.T) {
	deep.InTurn(t)
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
