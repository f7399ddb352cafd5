package storetest

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Several limits for one key of a zone come from plans, placeholders, overrides and processes with another config.

// overrideOfAnotherFamily: an override whose window or rate is not the zone's counts separately, and
// neither limit erases the counts of the other. A reset forgets both.
func overrideOfAnotherFamily(b *bench, name string) {
	b.notForSlots(name)
	r := b.ruled(Rule(b, "zone", name, per(5, time.Hour)), nil)
	expect := func(what string, want int) {
		b.Helper()
		passed := 0
		for range 10 {
			if r.ask(1).Allowed {
				passed++
			}
		}
		equal(b, what, passed, want)
	}
	other := store.Override{Kind: store.KindLimit, Limit: per(3, time.Second)}
	expect("under the zone's limit", 5)
	r.set(client, other)
	expect("under the override", 3)
	b.wait(2100 * time.Millisecond)
	expect("and again", 3)
	r.set(client, store.Override{})
	expect("under the zone's limit, with nothing left", 0)
	r.set(client, other)
	expect("under the override, with nothing left", 0)
	for range 2 {
		equal(b, "beside another zone", b.takeAll(
			store.Check{Rule: r.rule, Key: "client", Cost: 1, KeyRules: r.with},
			store.Check{Rule: Rule(b, "wide", name, per(1000, time.Hour)), Key: "client", Cost: 1},
		)[0].Allowed, false)
	}
	b.reset(r.rule)
	expect("under the override, after a reset", 3)
	r.set(client, store.Override{})
	expect("under the zone's limit, after a reset", 5)
	r.set(client, store.Override{Kind: store.KindLimit, Limit: per(3, 2*time.Hour), For: store.MinOverride})
	expect("under an override that ends soon", 3)
	b.wait(store.MinOverride - time.Millisecond)
	b.reset(r.rule)
	expect("under it, after a reset", 3)
}

// adjustedWhereCharged: an adjustment changes the state that was charged, whichever limit the
// key has by then.
func adjustedWhereCharged(b *bench, name string) {
	b.notForSlots(name)
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
		b := b.another()
		r := b.ruled(Rule(b, "zone", name, per(5, time.Hour)), nil)
		under := func(l *algorithms.Limit) (left int64) { // sets the override
			b.Helper()
			r.set(client, store.Override{})
			if l != nil {
				r.set(client, store.Override{Kind: store.KindLimit, Limit: *l})
			}
			return r.ask(0).Remaining
		}
		// Each limit charges 4. Then the charge under the first one is adjusted while the key has the other.
		under(c.after)
		r.ask(4)
		after, left, quota := under(c.after), under(c.before), int64(5)
		if c.before != nil {
			quota = 9
		}
		shared := left < quota // one state for both
		if left < 4 {          // which has no room for both
			b.reset(r.rule)
		}
		charged := b.chargedAs(store.Check{Rule: r.rule, Key: "client", Cost: 4, KeyRules: r.with})
		equal(b, c.what+": the decision names the override", charged.Override != "", c.before != nil)
		before := under(c.before)
		under(c.after)
		b.adjust(charged, -3)
		b.adjust(charged, 1)
		if !shared {
			equal(b, c.what+": left under the other limit", under(c.after), after)
		}
		equal(b, c.what+": left under the limit that charged", under(c.before), before+2)
	}
}

// leasesOutlive: a limit with a shorter lease, or without slots, does not end other leases.
func leasesOutlive(b *bench) {
	rule := func(events int64, lease time.Duration) *store.Rule {
		return Rule(b, "zone", "concurrency", algorithms.Limit{Events: events, Lease: lease})
	}
	long, short, none := rule(2, time.Hour), rule(3, 10*time.Minute), rule(0, time.Second)
	equal(b, "long leases", b.admitted(long, "client", 5), 2)
	held := b.charged(short, 1)
	equal(b, "without slots", b.admitted(none, "client", 2), 0)
	held.Rule = none
	b.store.Adjust(held)
	b.await(short, 1)
	b.wait(11 * time.Minute)
	equal(b, "left under long leases", b.take(long, "client", 0).Remaining, 0)
	equal(b, "left under short ones", b.take(short, "client", 0).Remaining, 1)
}
