package storetest

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// client is the key that most tests change.
var client = store.Selector{Key: "client"}

// ruled is a zone that takes overrides, and bans.
type ruled struct {
	*bench
	store.Overrider
	rule *store.Rule
	with *store.KeyRules
}

// ruled makes a zone that takes overrides. It skips the test if the store keeps none.
func (b *bench) ruled(rule *store.Rule, ban *store.Ban) *ruled {
	b.Helper()
	overrider, ok := b.store.(store.Overrider)
	if !ok {
		b.Skip("the store keeps no overrides")
	}
	return &ruled{b, overrider, rule, &store.KeyRules{Overrides: true, Ban: ban}}
}

// ask decides about the client.
func (r *ruled) ask(cost int64) algorithms.Decision {
	r.Helper()
	return r.takeWith(r.rule, "client", cost, r.with)
}

func (r *ruled) set(of store.Selector, to store.Override) {
	r.Helper()
	r.ok(r.SetRule(r.Context(), r.rule, of, to))
}

func (r *ruled) unban(of store.Selector) {
	r.Helper()
	r.ok(r.Unban(r.Context(), r.rule, of))
}

func (r *ruled) has(of store.Selector, want store.Override) {
	r.Helper()
	got, err := r.GetRule(r.Context(), r.rule, of)
	r.ok(err)
	equal(r, "the override of "+of.String(), got, want)
}

// bans tests a key that keeps sending requests, from ban to ban.
func bans(b *bench, name string) {
	rule := Rule(b, "zone", name, Limit(name, 2, time.Second))
	ban := &store.Ban{For: 10 * time.Second, After: 3, Within: 20 * time.Second, UpTo: 25 * time.Second}
	with := &store.KeyRules{Ban: ban}
	take := func(cost int64) algorithms.Decision { return b.takeWith(rule, "client", cost, with) }
	counted := func(want int64, next time.Duration) {
		b.Helper()
		counter, ok := b.store.(store.Overrider)
		if !ok {
			return
		}
		r, err := counter.Refusals(b.Context(), rule, ban, "client")
		if err != nil || r.Count != want || (r.Left > 0) != (want > 0) || r.Left > ban.Within || next > 0 && r.Next != next {
			b.Fatalf("%+v (%v), want %d, and a ban of %v", r, err, want, next)
		}
	}
	hammer := func(want time.Duration) {
		b.Helper()
		counted(0, want)
		for range 2 {
			equal(b, "there is room", take(1).Allowed, true)
		}
		for range 2 {
			if d := take(1); d.Allowed || d.Banned {
				b.Fatalf("refused by the limit: %+v", d)
			}
		}
		counted(2, want)
		d := take(1)
		if d.Allowed || !d.Banned || !d.BanBegins || d.RetryAfter != want {
			b.Fatalf("the third refusal: %+v, want a ban for %v", d, want)
		}
		counted(0, 0)
	}
	hammer(10 * time.Second)
	b.wait(4 * time.Second)
	for _, cost := range []int64{1, 0, 1} {
		d := take(cost)
		if d.Allowed || !d.Banned || d.BanBegins || d.RetryAfter != 6*time.Second ||
			d.Quota != 2 || d.Remaining != 0 || d.NextAfter != d.RetryAfter {
			b.Fatalf("banned, a cost of %d: %+v", cost, d)
		}
	}
	equal(b, "another key", b.takeWith(rule, "other", 1, with).Allowed, true)
	equal(b, "a check without key rules", b.take(rule, "client", 0).Allowed, true)
	b.wait(6*time.Second - time.Microsecond)
	equal(b, "a microsecond early", take(1).Banned, true)
	for _, next := range []struct{ wait, length time.Duration }{
		{time.Microsecond, 20 * time.Second},
		{20 * time.Second, 25 * time.Second},
		{25 * time.Second, 25 * time.Second},
		{50*time.Second - time.Microsecond, 25 * time.Second},
		{50 * time.Second, 10 * time.Second}, // earlier bans are forgotten
	} {
		b.wait(next.wait)
		hammer(next.length)
	}
	b.reset(rule)
	hammer(10 * time.Second)
}

// banWindow tests which refusals are counted together.
func banWindow(b *bench) {
	rule := Rule(b, "zone", "fixed_window", per(0, time.Hour))
	with := &store.KeyRules{Ban: &store.Ban{For: time.Minute, After: 3, Within: 10 * time.Second}}
	take := func() algorithms.Decision { return b.takeWith(rule, "client", 1, with) }
	for range 5 {
		take()
		b.wait(10*time.Second - time.Microsecond)
		equal(b, "two within", take().Banned, false)
		b.wait(time.Microsecond)
	}
	take()
	b.wait(10*time.Second - time.Microsecond)
	take()
	equal(b, "three within", take().Banned, true)
	// Without up_to, all bans have the same length.
	b.wait(time.Minute)
	for range 2 {
		take()
	}
	equal(b, "banned again", take().BanBegins, true)
	b.wait(time.Minute)
	equal(b, "for as long as before", take().Banned, false)

	// A clock that goes back during a ban does not free the key, unless the rest of the ban would be longer than
	// the ban was.
	for range 2 {
		take()
	}
	b.wait(30 * time.Second)
	b.wait(-30 * time.Second)
	equal(b, "half of the ban back", take().Banned, true)
	b.wait(-time.Microsecond)
	equal(b, "further back than the ban began", take().Banned, false)
}

// overrides tests every kind of override, one after the other on the same key.
func overrides(b *bench, name string) {
	r := b.ruled(Rule(b, "zone", name, Limit(name, 2, time.Hour)), nil)
	r.exempts()
	r.limits()
	r.bans()
}

// exempts lets the key pass uncounted, and counts it again.
func (r *ruled) exempts() {
	r.has(client, store.Override{})
	equal(r, "without", r.ask(1).Remaining, 1)
	r.set(client, store.Override{Kind: store.KindExempt, Note: "ours", For: time.Hour})
	for range 5 {
		equal(r, "exempt", r.ask(1), algorithms.Decision{Allowed: true, Exempt: true})
	}
	equal(r, "another key", r.takeWith(r.rule, "other", 1, r.with).Exempt, false)
	equal(r, "a check without key rules", r.take(r.rule, "client", 0).Remaining, 1)
	r.wait(20 * time.Second)
	r.has(client, store.Override{Kind: store.KindExempt, Note: "ours", For: time.Hour - 20*time.Second})
	r.set(client, store.Override{})
	r.has(client, store.Override{})
	equal(r, "cleared", r.ask(1).Remaining, 0)
	equal(r, "full", r.ask(1).Allowed, false)
}

// limits gives the key another limit, which counts the same requests.
func (r *ruled) limits() {
	pro := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 5}, Algorithm: r.rule.Algorithm().Name(), Note: "pro"}
	if name := r.rule.Algorithm().Name(); name == "token_bucket" || name == "leaky_bucket" {
		pro.Limit = algorithms.Limit{Events: 2, Burst: 5} // at another rate it would count in another bucket
	}
	r.set(client, pro)
	r.has(client, pro)
	for i := range 3 {
		if d := r.ask(1); !d.Allowed || d.Override == "" || d.Quota != 5 || d.Remaining != 2-int64(i) {
			r.Fatalf("5 instead of 2: %+v", d)
		}
	}
	if d := r.ask(1); d.Allowed || d.Override == "" {
		r.Fatalf("6th: %+v", d)
	}
	equal(r, "the zone's limit counts the same requests", r.take(r.rule, "client", 0).Remaining, 0)
}

// bans bans the key for good, and for a time, and ends bans but no exemption.
func (r *ruled) bans() {
	for length, wait := range map[time.Duration]time.Duration{0: algorithms.Never, 2 * time.Hour: 2 * time.Hour} {
		r.set(client, store.Override{Kind: store.KindBanned, For: length})
		if d := r.ask(1); d.Allowed || !d.Banned || d.BanBegins || d.RetryAfter != wait {
			r.Fatalf("banned for %v: %+v", length, d)
		}
	}
	r.set(client, store.Override{Kind: store.KindBanned, For: 2 * time.Hour})
	r.wait(2*time.Hour - time.Microsecond)
	equal(r, "a microsecond early", r.ask(1).Banned, true)
	r.wait(time.Microsecond)
	r.has(client, store.Override{})
	if d := r.ask(1); !d.Allowed || d.Override != "" || d.Quota != 2 {
		r.Fatalf("an override that has ended: %+v", d)
	}
	r.wait(time.Hour)
	r.set(client, store.Override{Kind: store.KindBanned})
	r.unban(client)
	equal(r, "unbanned", r.ask(1).Allowed, true)
	r.set(client, store.Override{Kind: store.KindExempt})
	r.reset(r.rule)
	r.unban(client)
	equal(r, "neither a reset nor an unban ends an exemption", r.ask(1).Exempt, true)
}

// keyRulesTogether tests requests of several zones with key rules.
func keyRulesTogether(b *bench, name string) {
	narrow, wide := Rule(b, "narrow", name, Limit(name, 2, time.Minute)), Rule(b, "wide", name, Limit(name, 9, time.Minute))
	r := b.ruled(narrow, &store.Ban{For: time.Minute, After: 3, Within: time.Minute})
	ask := func(cost int64) []algorithms.Decision {
		b.Helper()
		return b.takeAll(
			store.Check{Rule: wide, Key: "all", Cost: cost, KeyRules: r.with},
			store.Check{Rule: narrow, Key: "client", Cost: cost, KeyRules: r.with},
			store.Check{Rule: narrow, Key: "dry", Cost: cost, KeyRules: r.with, Independent: true})
	}
	for range 2 {
		ask(1)
	}
	for i := range 4 {
		d := ask(1)
		if !d[0].Allowed || d[1].Allowed || d[1].Banned != (i >= 2) || d[1].BanBegins != (i == 2) ||
			d[2].Banned != (i >= 2) || d[2].BanBegins != (i == 2) {
			b.Fatalf("request %d: %+v", i, d)
		}
	}
	r.set(client, store.Override{Kind: store.KindExempt})
	if d := ask(1); !d[0].Allowed || !d[1].Exempt || d[0].Remaining != 6 || !d[2].Banned {
		b.Fatalf("an exemption takes precedence over a ban: %+v", d)
	}
	if d := ask(8); d[0].Allowed || !d[1].Exempt || !d[1].Allowed { // more than is left of wide
		b.Fatalf("an exemption from one zone does not hold for others: %+v", d)
	}
	equal(b, "all has left", b.take(wide, "all", 0).Remaining, 6)
	r.set(client, store.Override{})
	equal(b, "banned as before", ask(1)[1].Banned, true)
	r.unban(client)
	equal(b, "unbanned, and refused by the limit", ask(1)[1].Banned, false)
}

// calendarOverride tests overrides of the events of calendar windows.
func calendarOverride(b *bench) {
	r := b.ruled(Rule(b, "zone", "fixed_window", algorithms.Limit{Events: 2, Calendar: algorithms.Day}), nil)
	r.set(client, store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 4}})
	for day := range 3 {
		for i := range 4 {
			equal(b, "left", r.ask(1).Remaining, int64(3-i))
		}
		d := r.ask(1)
		if d.Allowed || d.Quota != 4 || d.RetryAfter > 24*time.Hour {
			b.Fatalf("day %d: %+v", day, d)
		}
		b.wait(d.RetryAfter)
	}
	monthly := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 4, Calendar: algorithms.Month}}
	if r.SetRule(b.Context(), r.rule, client, monthly) == nil {
		b.Error("an override can have another calendar window, which no store could compute")
	}
}
