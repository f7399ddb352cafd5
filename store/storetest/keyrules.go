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
			b.takeAll(store.Check{Rule: rule, Key: "client", Cost: 1, KeyRules: with, Peek: true}) // which does not count
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

// overrides tests what is kept of overrides, when they end, and what ends them. AsAlgorithms has what they decide.
func overrides(b *bench, name string) {
	r := b.ruled(Rule(b, "zone", name, Limit(name, 2, time.Hour)), nil)
	decides := func() bool {
		d := r.ask(0)
		return d.Exempt || d.Banned || d.Override != ""
	}
	for _, o := range []store.Override{
		{Kind: store.KindExempt, Note: "ours", For: time.Hour},
		{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 5}, Algorithm: name, For: 2 * time.Hour},
		{Kind: store.KindBanned, Note: "bot", For: 3 * time.Hour},
	} {
		r.set(client, o)
		r.wait(20 * time.Second)
		o.For -= 20 * time.Second
		r.has(client, o)
		equal(r, "another key's quota", r.takeWith(r.rule, "other", 0, r.with).Quota, 2)
		r.wait(o.For - time.Microsecond)
		equal(r, "a microsecond early", decides(), true)
		r.wait(time.Microsecond)
		r.has(client, store.Override{})
		equal(r, "an override that has ended", decides(), false)
	}
	r.set(client, store.Override{Kind: store.KindBanned})
	equal(r, "banned for good", r.ask(1).RetryAfter, algorithms.Never)
	r.unban(client)
	equal(r, "unbanned", r.ask(1).Allowed, true)
	r.set(client, store.Override{Kind: store.KindExempt})
	r.reset(r.rule)
	r.unban(client)
	equal(r, "neither a reset nor an unban ends an exemption", r.ask(1).Exempt, true)
}
