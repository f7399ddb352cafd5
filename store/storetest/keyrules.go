package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// keyRules tests overrides and bans.
func keyRules(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			t.Run("Bans", func(t *testing.T) { bans(t, open, name) })
			t.Run("Overrides", func(t *testing.T) { overrides(t, open, name) })
		})
	}
	t.Run("Window", func(t *testing.T) { banWindow(t, open) })
	t.Run("Together", func(t *testing.T) { keyRulesTogether(t, open) })
	t.Run("Calendar", func(t *testing.T) { calendarOverride(t, open) })
	t.Run("Adjustments", func(t *testing.T) { overrideAdjustments(t, open) })
}

// takeWith takes a check with key rules.
func (b *bench) takeWith(rule *store.Rule, key string, cost int64, rules *store.KeyRules) algorithms.Decision {
	b.Helper()
	return b.takeAll(store.Check{Rule: rule, Key: key, Cost: cost, KeyRules: rules})[0]
}

// bans tests a key that keeps sending requests, from ban to ban.
func bans(t *testing.T, open Open, name string) {
	b := start(t, open)
	rule := Rule(t, "zone", name, Limit(name, 2, time.Second))
	with := &store.KeyRules{Ban: &store.Ban{For: 10 * time.Second, After: 3, Within: 20 * time.Second, UpTo: 25 * time.Second}}
	take := func(cost int64) algorithms.Decision { return b.takeWith(rule, "client", cost, with) }
	counted := func(want int64, next time.Duration) {
		t.Helper()
		counter, ok := b.store.(store.Overrider)
		if !ok {
			return
		}
		r, err := counter.Refusals(context.Background(), rule, with.Ban, "client")
		if err != nil || r.Count != want || (r.Left > 0) != (want > 0) || r.Left > with.Ban.Within || next > 0 && r.Next != next {
			t.Fatalf("%+v (%v), want %d, and a ban of %v", r, err, want, next)
		}
	}
	hammer := func(want time.Duration) {
		t.Helper()
		counted(0, want)
		for range 2 {
			equal(t, "there is room", take(1).Allowed, true)
		}
		for range 2 {
			if d := take(1); d.Allowed || d.Banned {
				t.Fatalf("refused by the limit: %s", describe(d))
			}
		}
		counted(2, want)
		d := take(1)
		if d.Allowed || !d.Banned || !d.BanBegins || d.RetryAfter != want {
			t.Fatalf("the third refusal: %s, want a ban for %v", describe(d), want)
		}
		counted(0, 0)
	}
	hammer(10 * time.Second)
	b.wait(4 * time.Second)
	for _, cost := range []int64{1, 0, 1} {
		d := take(cost)
		if d.Allowed || !d.Banned || d.BanBegins || d.RetryAfter != 6*time.Second ||
			d.Quota != 2 || d.Remaining != 0 || d.NextAfter != d.RetryAfter {
			t.Fatalf("banned, a cost of %d: %s", cost, describe(d))
		}
	}
	equal(t, "another key", b.takeWith(rule, "other", 1, with).Allowed, true)
	equal(t, "a check without key rules", b.take(rule, "client", 0).Allowed, true)
	b.wait(6*time.Second - time.Microsecond)
	equal(t, "a microsecond early", take(1).Banned, true)
	b.wait(time.Microsecond)
	hammer(20 * time.Second)
	b.wait(20 * time.Second)
	hammer(25 * time.Second)
	b.wait(25 * time.Second)
	hammer(25 * time.Second)
	b.wait(25*time.Second + 25*time.Second - time.Microsecond)
	hammer(25 * time.Second)
	b.wait(25*time.Second + 25*time.Second)
	hammer(10 * time.Second) // earlier bans are forgotten

	if err := b.store.Reset(context.Background(), rule, "client"); err != nil {
		t.Fatal(err)
	}
	hammer(10 * time.Second)
}

// banWindow tests which refusals are counted together.
func banWindow(t *testing.T, open Open) {
	b := start(t, open)
	rule := Rule(t, "zone", "fixed_window", per(0, time.Hour))
	with := &store.KeyRules{Ban: &store.Ban{For: time.Minute, After: 3, Within: 10 * time.Second}}
	take := func() algorithms.Decision { return b.takeWith(rule, "client", 1, with) }
	for range 5 {
		take()
		b.wait(10*time.Second - time.Microsecond)
		equal(t, "two within", take().Banned, false)
		b.wait(time.Microsecond)
	}
	take()
	b.wait(10*time.Second - time.Microsecond)
	take()
	equal(t, "three within", take().Banned, true)
	// Without up_to, all bans have the same length.
	b.wait(time.Minute)
	for range 2 {
		take()
	}
	equal(t, "banned again", take().BanBegins, true)
	b.wait(time.Minute)
	equal(t, "for as long as before", take().Banned, false)

	// A clock that goes back during a ban does not free the key, unless the rest of the ban would be longer than
	// the ban was.
	for range 2 {
		take()
	}
	b.wait(30 * time.Second)
	b.wait(-30 * time.Second)
	equal(t, "half of the ban back", take().Banned, true)
	b.wait(-time.Microsecond)
	equal(t, "further back than the ban began", take().Banned, false)
}

// client is the key that most tests change.
var client = store.Selector{Key: "client"}

// overrider returns the store as one that keeps overrides, or skips the test.
func (b *bench) overrider(t *testing.T) store.Overrider {
	t.Helper()
	overrider, ok := b.store.(store.Overrider)
	if !ok {
		t.Skip("the store keeps no overrides")
	}
	return overrider
}

// overridden is the key of a zone that takes overrides.
type overridden struct {
	*bench
	overrider store.Overrider
	rule      *store.Rule
	with      *store.KeyRules
}

func (o *overridden) take() algorithms.Decision { return o.takeWith(o.rule, "client", 1, o.with) }

func (o *overridden) set(t *testing.T, override store.Override) {
	t.Helper()
	if err := o.overrider.SetRule(t.Context(), o.rule, client, override); err != nil {
		t.Fatal(err)
	}
}

func (o *overridden) has(t *testing.T, want store.Override) {
	t.Helper()
	got, err := o.overrider.GetRule(t.Context(), o.rule, client)
	if err != nil || got != want {
		t.Fatalf("the override is %+v (%v), want %+v", got, err, want)
	}
}

// overrides tests every kind of override, one after the other on the same key.
func overrides(t *testing.T, open Open, name string) {
	b := start(t, open)
	o := &overridden{b, b.overrider(t), Rule(t, "zone", name, Limit(name, 2, time.Hour)), &store.KeyRules{Overrides: true}}
	o.exempts(t)
	o.limits(t)
	o.bans(t)
	o.unbans(t)
	invalid := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: -1}}
	if err := o.overrider.SetRule(t.Context(), o.rule, client, invalid); err == nil {
		t.Error("an invalid limit can be set")
	}
}

// exempts lets the key pass uncounted, and counts it again.
func (o *overridden) exempts(t *testing.T) {
	o.has(t, store.Override{})
	equal(t, "without", o.take().Remaining, 1)

	o.set(t, store.Override{Kind: store.KindExempt, Note: "ours", For: time.Hour})
	for range 5 {
		if d := o.take(); d != (algorithms.Decision{Allowed: true, Exempt: true}) {
			t.Fatalf("exempt: %s", describe(d))
		}
	}
	equal(t, "another key", o.takeWith(o.rule, "other", 1, o.with).Exempt, false)
	equal(t, "a check without key rules", o.bench.take(o.rule, "client", 0).Remaining, 1)
	o.wait(20 * time.Second)
	o.has(t, store.Override{Kind: store.KindExempt, Note: "ours", For: time.Hour - 20*time.Second})
	if err := o.overrider.SetRule(t.Context(), o.rule, client, store.Override{}); err != nil {
		t.Fatal(err)
	}
	o.has(t, store.Override{})
	equal(t, "cleared", o.take().Remaining, 0)
	equal(t, "full", o.take().Allowed, false)
}

// limits gives the key another limit, which counts the same requests.
func (o *overridden) limits(t *testing.T) {
	limit := algorithms.Limit{Events: 5}
	if name := o.rule.Algorithm().Name(); name == "token_bucket" || name == "leaky_bucket" {
		limit = algorithms.Limit{Events: 2, Burst: 5} // at another rate it would count in another bucket
	}
	o.set(t, store.Override{Kind: store.KindLimit, Limit: limit, Note: "pro"})
	o.has(t, store.Override{Kind: store.KindLimit, Limit: limit, Note: "pro"})
	for i := range 3 {
		if d := o.take(); !d.Allowed || d.Override == "" || d.Quota != 5 || d.Remaining != 2-int64(i) {
			t.Fatalf("5 instead of 2: %s", describe(d))
		}
	}
	if d := o.take(); d.Allowed || d.Override == "" {
		t.Fatalf("6th: %s", describe(d))
	}
	equal(t, "the zone's limit counts the same requests", o.bench.take(o.rule, "client", 0).Remaining, 0)
}

// bans bans the key for good, and for a time.
func (o *overridden) bans(t *testing.T) {
	o.set(t, store.Override{Kind: store.KindBanned})
	if d := o.take(); d.Allowed || !d.Banned || d.RetryAfter != algorithms.Never {
		t.Fatalf("banned: %s", describe(d))
	}
	o.set(t, store.Override{Kind: store.KindBanned, For: 2 * time.Hour})
	if d := o.take(); d.Allowed || !d.Banned || d.BanBegins || d.RetryAfter != 2*time.Hour {
		t.Fatalf("banned for two hours: %s", describe(d))
	}
	o.wait(2*time.Hour - time.Microsecond)
	equal(t, "a microsecond early", o.take().Banned, true)
	o.wait(time.Microsecond)
	o.has(t, store.Override{})
	if d := o.take(); !d.Allowed || d.Override != "" || d.Quota != 2 {
		t.Fatalf("an override that has ended: %s", describe(d))
	}
}

// unbans ends a ban, and no exemption.
func (o *overridden) unbans(t *testing.T) {
	o.wait(time.Hour)
	o.set(t, store.Override{Kind: store.KindBanned})
	if err := o.overrider.Unban(t.Context(), o.rule, client); err != nil {
		t.Fatal(err)
	}
	equal(t, "unbanned", o.take().Allowed, true)
	o.set(t, store.Override{Kind: store.KindExempt})
	if err := o.store.Reset(t.Context(), o.rule, "client"); err != nil {
		t.Fatal(err)
	}
	if err := o.overrider.Unban(t.Context(), o.rule, client); err != nil {
		t.Fatal(err)
	}
	equal(t, "neither a reset nor an unban ends an exemption", o.take().Exempt, true)
}

// keyRulesTogether tests requests of several zones with key rules.
func keyRulesTogether(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		b := start(t, open)
		overrider := b.overrider(t)
		ctx := context.Background()
		narrow, wide := Rule(t, "narrow", name, Limit(name, 2, time.Minute)), Rule(t, "wide", name, Limit(name, 9, time.Minute))
		with := &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Minute, After: 3, Within: time.Minute}}
		ask := func(cost int64) []algorithms.Decision {
			t.Helper()
			return b.takeAll(
				store.Check{Rule: wide, Key: "all", Cost: cost, KeyRules: with},
				store.Check{Rule: narrow, Key: "client", Cost: cost, KeyRules: with},
				store.Check{Rule: narrow, Key: "dry", Cost: cost, KeyRules: with, Independent: true})
		}
		left := func(rule *store.Rule, key string, want int64) {
			t.Helper()
			equal(t, name+": "+key+" has left", b.take(rule, key, 0).Remaining, want)
		}
		for range 2 {
			ask(1)
		}
		for i := range 4 {
			d := ask(1)
			if !d[0].Allowed || d[1].Allowed || d[1].Banned != (i >= 2) || d[1].BanBegins != (i == 2) ||
				d[2].Banned != (i >= 2) || d[2].BanBegins != (i == 2) {
				t.Fatalf("%s: request %d: %+v", name, i, d)
			}
		}
		left(wide, "all", 7)
		if err := overrider.SetRule(ctx, narrow, client, store.Override{Kind: store.KindExempt}); err != nil {
			t.Fatal(err)
		}
		d := ask(1)
		if !d[0].Allowed || !d[1].Exempt || d[0].Remaining != 6 || !d[2].Banned {
			t.Fatalf("%s: an exemption takes precedence over a ban: %+v", name, d)
		}
		d = ask(8) // more than is left of wide
		if d[0].Allowed || !d[1].Exempt || !d[1].Allowed {
			t.Fatalf("%s: an exemption from one zone does not hold for others: %+v", name, d)
		}
		left(wide, "all", 6)
		if err := overrider.SetRule(ctx, narrow, client, store.Override{}); err != nil {
			t.Fatal(err)
		}
		equal(t, "banned as before", ask(1)[1].Banned, true)
		if err := overrider.Unban(ctx, narrow, client); err != nil {
			t.Fatal(err)
		}
		equal(t, "unbanned, and refused by the limit", ask(1)[1].Banned, false)
	}
}

// calendarOverride tests overrides of the events of calendar windows.
func calendarOverride(t *testing.T, open Open) {
	b := start(t, open)
	overrider := b.overrider(t)
	ctx := context.Background()
	rule := Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 2, Calendar: algorithms.Day})
	four := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 4}}
	if err := overrider.SetRule(ctx, rule, client, four); err != nil {
		t.Fatal(err)
	}
	with := &store.KeyRules{Overrides: true}
	for day := range 3 {
		passed := 0
		var d algorithms.Decision
		for range 9 {
			if d = b.takeWith(rule, "client", 1, with); d.Allowed {
				passed++
			}
		}
		if passed != 4 || d.Quota != 4 || d.RetryAfter > 24*time.Hour {
			t.Fatalf("day %d: %d passed, %s", day, passed, describe(d))
		}
		b.wait(d.RetryAfter)
	}
	monthly := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 4, Calendar: algorithms.Month}}
	if err := overrider.SetRule(ctx, rule, client, monthly); err == nil {
		t.Error("an override can have another calendar window, which no store could compute")
	}
}

// overrideAdjustments: a charge is adjusted under the limit that made it.
func overrideAdjustments(t *testing.T, open Open) {
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue
		}
		b := start(t, open)
		overrider := b.overrider(t)
		rule := Rule(t, "zone", name, Limit(name, 5, time.Hour))
		hundred := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 100}}
		if err := overrider.SetRule(context.Background(), rule, client, hundred); err != nil {
			t.Fatal(err)
		}
		check := store.Check{Rule: rule, Key: "client", Cost: 90, KeyRules: &store.KeyRules{Overrides: true}}
		d := b.takeAll(check)[0]
		equal(t, name+": remaining", d.Remaining, 10)
		b.adjust(store.Adjustment{Check: check, At: b.now, Turn: b.now, Override: d.Override}, -1)
		check.Cost = 0
		equal(t, name+": with one given back", b.takeAll(check)[0].Remaining, 11)
	}
}
