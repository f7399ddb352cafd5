package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// limits tests several limits for one key of a zone. They come from plans, placeholders,
// overrides and processes with another config.
func limits(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			t.Run("RaisedAndLowered", func(t *testing.T) { raisedAndLowered(t, open, name) })
			t.Run("AloneIsAllowed", func(t *testing.T) { aloneIsAllowed(t, open, name) })
			if name == "concurrency" {
				return
			}
			t.Run("AnotherPlanErasesNothing", func(t *testing.T) { anotherPlan(t, open, name) })
			t.Run("AnotherQuotaErasesNothing", func(t *testing.T) { anotherQuota(t, open, name) })
			t.Run("Override", func(t *testing.T) { overrideFamily(t, open, name) })
			t.Run("AdjustedWhereCharged", func(t *testing.T) { adjustedWhereCharged(t, open, name) })
		})
	}
	t.Run("LeasesOutliveAShorterOne", func(t *testing.T) { leasesOutlive(t, open) })
}

// anotherPlan: a key meets 5 in an hour and 100 in a second. Each second that ends must leave
// the count of the hour as it is.
func anotherPlan(t *testing.T, open Open, name string) {
	b := start(t, open)
	post, get := Rule(t, "zone", name, per(5, time.Hour)), Rule(t, "zone", name, per(100, time.Second))
	posts := 0
	for range 4 {
		posts += b.admitted(post, "client", 20)
		b.wait(2100 * time.Millisecond)
		equal(t, "under 100 in a second", b.take(get, "client", 1).Allowed, true)
		b.wait(1100 * time.Millisecond)
	}
	equal(t, "admitted within 13 s under 5 in an hour", posts, 5)
}

// anotherQuota: a key meets two limits in turn that differ only in how much fits.
func anotherQuota(t *testing.T, open Open, name string) {
	large, small := per(25, 10*time.Second), per(5, 10*time.Second)
	pairs := [][2]algorithms.Limit{{large, small}}
	if name == "token_bucket" || name == "leaky_bucket" {
		same := large
		same.Burst = 5
		pairs = append(pairs, [2]algorithms.Limit{large, same})
	}
	for _, pair := range pairs {
		passed := [2]int{}
		for with := range passed {
			b := start(t, open)
			large, small := Rule(t, "zone", name, pair[0]), Rule(t, "zone", name, pair[1])
			for range 2 {
				passed[with] += b.admitted(large, "client", 30)
				b.wait(2050 * time.Millisecond)
				if with == 1 {
					b.take(small, "client", 1)
				}
			}
			passed[with] += b.admitted(large, "client", 30)
		}
		if passed[1] > passed[0] {
			t.Errorf("%+v: %d admitted alone, but %d with requests under %+v in between", pair[0], passed[0], passed[1], pair[1])
		}
	}
}

// raisedAndLowered tests what remains of a limit that is changed, for each algorithm.
func raisedAndLowered(t *testing.T, open Open, name string) {
	b := start(t, open)
	rule := func(events, burst int64) *store.Rule {
		l := Limit(name, events, time.Hour)
		l.Burst = burst
		return Rule(t, "zone", name, l)
	}
	expect := func(what string, rule *store.Rule, want int) {
		t.Helper()
		equal(t, what, b.admitted(rule, "client", 40), want)
	}
	expect("10", rule(10, 0), 10)
	switch name {
	case "token_bucket", "leaky_bucket":
		// Limits with the same rate share a bucket. At another rate, a bucket begins full.
		expect("with a burst of 25", rule(10, 25), 15)
		expect("lowered again", rule(10, 0), 0)
		expect("20 in an hour", rule(20, 0), 20)
		expect("5 in an hour", rule(5, 0), 5)
		expect("10 in an hour, again", rule(10, 25), 0)
		b.wait(90 * time.Minute) // 15 of 25 have come back
		expect("a burst of 10, with 10 still taken", rule(10, 0), 0)
		expect("a burst of 25", rule(10, 25), 15)
	default:
		expect("raised to 25", rule(25, 0), 15)
		expect("lowered to 12", rule(12, 0), 0)
		expect("raised to 27", rule(27, 0), 2)
		equal(t, "left of 10", b.take(rule(10, 0), "client", 0).Remaining, 0)
		expect("raised to 30", rule(30, 0), 3)
	}
}

// aloneIsAllowed draws requests under several limits. For each limit, a separate zone decides
// on the requests that were admitted under that limit. It must admit them all.
func aloneIsAllowed(t *testing.T, open Open, name string) {
	b := start(t, open)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	steps, admitted := deep.Steps(200, 100_000), 0
	for run := 0; steps > 0; run++ {
		key := fmt.Sprint("client ", run)
		var shared, alone []*store.Rule
		for i, l := range several(r, name) {
			shared = append(shared, Rule(t, "shared", name, l))
			alone = append(alone, Rule(t, fmt.Sprint("alone", i), name, l))
		}
		for range min(steps, 200) {
			steps--
			b.wait(time.Duration(r.Int64N(1<<r.IntN(22))) * time.Microsecond)
			i := r.IntN(len(shared))
			cost := 1 + r.Int64N(1+r.Int64N(4))
			if !b.take(shared[i], key, cost).Allowed {
				continue
			}
			admitted++
			if d := b.take(alone[i], key, cost); !d.Allowed {
				t.Fatalf("seed %d, run %d: cost %d was admitted under %+v among other limits, but is not alone: %s",
					seed, run, cost, shared[i].Limit(), describe(d))
			}
		}
	}
	if admitted == 0 {
		t.Error("nothing was admitted")
	}
}

// several draws limits that differ in little or much. Their windows never start with a
// request, because they would start with requests under other limits, too.
func several(r *rand.Rand, name string) (limits []algorithms.Limit) {
	window := func() time.Duration { return time.Duration(1+r.Int64N(4)) * 500 * time.Millisecond }
	l := Limit(name, 1+r.Int64N(12), window())
	if l.Lease > 0 {
		l.Lease = time.Minute // longer than the test, because nothing renews it
	}
	for range 2 + r.IntN(3) {
		limits = append(limits, l)
		switch r.IntN(3) {
		case 0:
			l.Events = 1 + r.Int64N(12)
		case 1:
			if l.Window > 0 {
				l.Window = window()
			}
		default:
			switch name {
			case "token_bucket", "leaky_bucket":
				l.Burst = r.Int64N(20)
			}
			if name == "leaky_bucket" {
				l.Mode = []string{algorithms.ModeMeter, algorithms.ModeQueue}[r.IntN(2)]
			}
		}
	}
	return limits
}

// overrideFamily: an override whose window or rate is not the zone's counts separately, and
// neither limit erases the counts of the other. A reset forgets both.
func overrideFamily(t *testing.T, open Open, name string) {
	b := start(t, open)
	overrider := b.overrider(t)
	ctx, with := context.Background(), &store.KeyRules{Overrides: true}
	rule := Rule(t, "zone", name, per(5, time.Hour))
	admitted := func() (passed int) {
		for range 10 {
			if b.takeWith(rule, "client", 1, with).Allowed {
				passed++
			}
		}
		return passed
	}
	set := func(l algorithms.Limit) {
		t.Helper()
		if err := overrider.SetRule(ctx, rule, client, store.Override{Kind: store.KindLimit, Limit: l}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "under the zone's limit", admitted(), 5)
	set(per(3, time.Second))
	equal(t, "under the override", admitted(), 3)
	b.wait(2100 * time.Millisecond)
	equal(t, "and again", admitted(), 3)
	if err := overrider.SetRule(ctx, rule, client, store.Override{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "under the zone's limit, with nothing left", admitted(), 0)
	set(per(3, time.Second))
	equal(t, "under the override, with nothing left", admitted(), 0)
	for range 2 {
		equal(t, "beside another zone", b.takeAll(
			store.Check{Rule: rule, Key: "client", Cost: 1, KeyRules: with},
			store.Check{Rule: Rule(t, "wide", name, per(1000, time.Hour)), Key: "client", Cost: 1},
		)[0].Allowed, false)
	}
	if err := b.store.Reset(ctx, rule, "client"); err != nil {
		t.Fatal(err)
	}
	equal(t, "under the override, after a reset", admitted(), 3)
	if err := overrider.SetRule(ctx, rule, client, store.Override{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "under the zone's limit, after a reset", admitted(), 5)
	ends := store.Override{Kind: store.KindLimit, Limit: per(3, 2*time.Hour), For: store.MinOverride}
	if err := overrider.SetRule(ctx, rule, client, ends); err != nil {
		t.Fatal(err)
	}
	equal(t, "under an override that ends soon", admitted(), 3)
	b.wait(store.MinOverride - time.Millisecond)
	b.reset(rule)
	equal(t, "under it, after a reset", admitted(), 3)
}

// adjustedWhereCharged: an adjustment changes the state that was charged, whichever limit the
// key has by then.
func adjustedWhereCharged(t *testing.T, open Open, name string) {
	for _, c := range []struct {
		what          string
		before, after *algorithms.Limit // of the key's override, nil without one
	}{
		{"set", nil, &algorithms.Limit{Events: 9, Window: time.Second}},
		{"set, of the same window", nil, &algorithms.Limit{Events: 9}},
		{"cleared", &algorithms.Limit{Events: 9, Window: 2 * time.Hour}, nil},
		{"cleared, of the same window", &algorithms.Limit{Events: 9}, nil},
		{"changed", &algorithms.Limit{Events: 9, Window: 2 * time.Hour}, &algorithms.Limit{Events: 9, Window: 3 * time.Hour}},
		{"set to nothing", &algorithms.Limit{Events: 9}, &algorithms.Limit{Events: 0}},
	} {
		b := start(t, open)
		overrider := b.overrider(t)
		rule := Rule(t, "zone", name, per(5, time.Hour))
		check := store.Check{Rule: rule, Key: "client", Cost: 4, KeyRules: &store.KeyRules{Overrides: true}}
		override := func(l *algorithms.Limit) {
			t.Helper()
			err := overrider.SetRule(context.Background(), rule, client, store.Override{})
			if err == nil && l != nil {
				err = overrider.SetRule(context.Background(), rule, client, store.Override{Kind: store.KindLimit, Limit: *l})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		left := func() int64 {
			check := check
			check.Cost = 0
			return b.takeAll(check)[0].Remaining
		}
		// Each limit charges 4. Then the charge under the first one is adjusted.
		override(c.after)
		b.takeAll(check)
		after := left()
		override(c.before)
		shared := left() < 5 && c.before == nil || left() < 9 && c.before != nil // one state for both
		d := b.takeNamed(check)
		if !d.Allowed { // the shared state had no room for both
			if err := b.store.Reset(context.Background(), rule, "client"); err != nil {
				t.Fatal(err)
			}
			d = b.takeNamed(check)
		}
		charged := store.Adjustment{Check: check, At: d.At, Turn: d.Turn(), Override: d.Override}
		equal(t, name+": "+c.what+": the decision names the override", d.Override != "", c.before != nil)
		before := left()
		override(c.after)
		if shared {
			after = left()
		}
		b.adjust(charged, -3)
		b.adjust(charged, 1)
		if !shared {
			equal(t, name+": "+c.what+": left under the other limit", left(), after)
		}
		override(c.before)
		equal(t, name+": "+c.what+": left under the limit that charged", left(), before+2)
	}
}

// leasesOutlive: a limit with a shorter lease, or without slots, does not end other leases.
func leasesOutlive(t *testing.T, open Open) {
	b := start(t, open)
	long := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 2, Lease: time.Hour})
	short := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 3, Lease: 10 * time.Minute})
	none := Rule(t, "zone", "concurrency", algorithms.Limit{Events: 0, Lease: time.Second})
	equal(t, "long leases", b.admitted(long, "client", 5), 2)
	held := store.Check{Rule: short, Key: "client", Cost: 1, LeaseID: LeaseID(short)}
	equal(t, "a shorter one", b.takeNamed(held).Allowed, true)
	equal(t, "without slots", b.admitted(none, "client", 2), 0)
	b.store.Adjust(store.Adjustment{Check: store.Check{Rule: none, Key: "client", Cost: 1, LeaseID: held.LeaseID}, Delta: -1})
	b.await(short, 1)
	b.wait(11 * time.Minute)
	equal(t, "left under long leases", b.take(long, "client", 0).Remaining, 0)
	equal(t, "left under short ones", b.take(short, "client", 0).Remaining, 1)
}
