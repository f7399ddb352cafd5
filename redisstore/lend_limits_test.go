//go:build deep

package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendPlans: a client that changes its plan with each request gets no more than the larger of the two limits in
// all, and under each plan no more than that allows. What is lent under one counts as used under the other.
func TestLendPlans(t *testing.T) {
	t.Parallel()
	const small, large = 300, 1000
	for _, algorithm := range []string{"sliding_window_log", "fixed_window"} {
		server := redistest.Start(t)
		stores := []*redisstore.Store{open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})}
		plan := func(n int64) *store.Rule {
			return lendingRule(t, "z", algorithm, algorithms.Limit{Events: n, Window: 1000 * time.Hour}, period)
		}
		rules := []*store.Rule{plan(small), plan(large)}
		var passed [2]int64
		for i := range 4000 {
			which := i / 2 % 2
			d, err := decideOne(stores[i%2], store.Check{Rule: rules[which], Key: "k", Cost: 1})
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				passed[which]++
			}
		}
		if passed[0] > small || passed[0]+passed[1] > large || passed[0]+passed[1] < large*9/10 {
			t.Errorf("%s: %d passed under the plan of %d, and %d under that of %d", algorithm, passed[0], small, passed[1], large)
		}
		t.Logf("%s: %v passed", algorithm, passed)
	}
}

// TestLendLowered: after a reload with a lower limit, what the config before was lent counts as used. So no more passes
// than the larger of the two limits, and nothing once the lower one is used up.
func TestLendLowered(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", nil)
	before := f.check
	f.check.Rule = lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 300, Window: 1000 * time.Hour}, 10*time.Second)
	held := f.lent()
	f.passed += f.ask(t, f.stores[0], 1000)
	if f.passed > 300 {
		t.Errorf("%d passed", f.passed)
	}
	after := f.check
	f.check = before // the other has not loaded it yet
	f.passed += f.ask(t, f.stores[1], int(held))
	if f.passed > 1000 {
		t.Errorf("%d passed", f.passed)
	}
	f.check = after
	if n := f.ask(t, f.stores[1], 300) + f.ask(t, f.stores[0], 300); f.passed >= 300 && n > 0 {
		t.Errorf("%d passed, and then %d under a limit of 300", f.passed, n)
	}
}

// TestLendEmptied: if Redis forgets everything, no more passes on top of the limit than was lent.
func TestLendEmptied(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
	held := f.lent()
	if err := f.server.Admin().FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	passed := f.ask(t, f.stores[0], 1500) + f.ask(t, f.stores[1], 1500)
	if passed > 1000+held || passed < 900 {
		t.Errorf("%d passed, want up to %d", passed, 1000+held)
	}
}

// TestLendBanWhileOthersHold: requests that cost too much are refused although parts are lent. The ban that follows
// holds in a second where these parts are.
func TestLendBanWhileOthersHold(t *testing.T) {
	t.Parallel()
	const after = 15
	f := startLent(t, "fixed_window", &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: after, Within: time.Hour}})
	cold := open(t, redisstore.Options{Address: f.server.Addr()})
	large := f.check
	large.Cost = 900
	for i := 1; i <= after; i++ {
		d, err := decideOne([]*redisstore.Store{f.stores[0], cold}[i%2], large)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed || d.BanBegins != (i == after) {
			t.Fatalf("refusal %d: %+v", i, d)
		}
	}
	patient.Until(t, "the ban is noted", func() bool {
		return f.server.Admin().StrLen(context.Background(), "rl:changes").Val() == 16
	})
	f.noticed(t)
	for _, s := range f.stores {
		if d, err := decideOne(s, f.check); err != nil || !d.Banned {
			t.Errorf("a request of a banned key: %+v, %v", d, err)
		}
	}
}

// TestLendManyChanges: if more keys have changed than are noted, a process gives up all that it holds.
func TestLendManyChanges(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
	f.set(t, store.Override{Kind: store.KindBanned})
	for i := range 600 {
		if err := f.stores[0].Clear(context.Background(), f.check.Rule, strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	f.noticed(t)
	if n := f.server.Admin().StrLen(context.Background(), "rl:changes").Val(); n != 512*16 {
		t.Errorf("the changes have %d bytes", n)
	}
}

// TestLendOverrideFull: a full Redis that refuses an override says so, and one that has it lets it be taken back. What
// it notes needs no room.
func TestLendOverrideFull(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
	f.set(t, store.Override{Kind: store.KindExempt})
	f.noticed(t)
	ctx := context.Background()
	if err := f.server.Admin().ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := f.stores[0].Set(ctx, f.check.Rule, "other", store.Override{Kind: store.KindBanned}); err == nil {
		t.Error("an override was set without room")
	}
	if err := f.stores[0].Clear(ctx, f.check.Rule, "k"); err != nil {
		t.Error(err)
	}
	if err := f.stores[0].Reset(ctx, f.check.Rule, "k"); err != nil {
		t.Error(err)
	}
}

// TestLendBesideSlots: in a zone that lends, each request under a plan of slots asks, and gives its slot back. What happens to
// the key there has all instances give up what they hold of it under the other plans.
func TestLendBesideSlots(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
	slots, s := f.check, f.stores[0]
	slots.Rule = lendingRule(t, "z", "concurrency", algorithms.Limit{Events: 1, Lease: time.Hour}, 10*time.Second)
	peek := slots
	peek.Peek = true
	for i := range 20 {
		c, calls := named(slots), s.Stats().Calls
		d, err := decideOne(s, c)
		if made := s.Stats().Calls - calls; err != nil || !d.Allowed || made == 0 {
			t.Fatalf("request %d: %+v, %v, %d calls", i, d, err, made)
		}
		s.Adjust(store.GiveBack(&c, &d))
		patient.Until(t, "the slot is free", func() bool {
			d, err := decideOne(f.stores[1], peek)
			return err == nil && d.Remaining == 1
		})
	}
	if n := f.lent(); n == 0 {
		t.Fatal("nothing is lent of the other limit")
	}
	if err := s.Set(t.Context(), slots.Rule, "k", store.Override{Kind: store.KindBanned}); err != nil {
		t.Fatal(err)
	}
	f.noticed(t)
}

// TestLendCountsRefusalsOnce: a request that is refused in a zone with a ban counts once, also if it is asked again because
// parts are lent of another zone of it.
func TestLendCountsRefusalsOnce(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", nil)
	ban := &store.Ban{For: time.Hour, After: 100, Within: time.Hour}
	narrow := lendingRule(t, "narrow", "fixed_window", algorithms.Limit{Events: 1, Window: 1000 * time.Hour}, 10*time.Second)
	plain, err := store.NewRule("narrow", narrow.Algorithm(), narrow.Limit(), 0)
	if err != nil {
		t.Fatal(err)
	}
	full := store.Check{Rule: plain, Key: "k", Cost: 1, KeyRules: &store.KeyRules{Ban: ban}}
	ctx := context.Background()
	for refusals := range int64(4) { // the first one is not refused
		cold := open(t, redisstore.Options{Address: f.server.Addr()})
		if err := cold.Take(ctx, []store.Check{full, f.check}, make([]algorithms.Decision, 2)); err != nil {
			t.Fatal(err)
		}
		if r, err := cold.Refusals(ctx, plain, ban, "k"); err != nil || r.Count != refusals {
			t.Errorf("%d refusals are counted, want %d: %v", r.Count, refusals, err)
		}
	}
}
