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

// refusals tests how many refusals count towards a ban, and for how long the next one is. AsAlgorithms has the bans themselves.
func refusals(b *bench) {
	ban := &store.Ban{For: 10 * time.Second, After: 3, Within: 20 * time.Second, UpTo: 25 * time.Second}
	r := b.ruled(Rule(b, "zone", "fixed_window", per(0, time.Hour)), ban)
	for _, next := range []time.Duration{10 * time.Second, 20 * time.Second, 25 * time.Second, 25 * time.Second} {
		for n := range int64(3) {
			is, err := r.Refusals(b.Context(), r.rule, ban, "client")
			if err != nil || is.Count != n || (is.Left > 0) != (n > 0) || is.Left > ban.Within || is.Next != next {
				b.Fatalf("%+v (%v), want %d, and a ban of %v", is, err, n, next)
			}
			equal(b, "a ban begins", r.ask(1).BanBegins, n == 2)
		}
		equal(b, "the ban", r.ask(0).RetryAfter, next)
		b.wait(next)
	}
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
