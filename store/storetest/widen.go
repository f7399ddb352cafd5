package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// widenBench is a store that counts which keys of a network are banned at once.
type widenBench struct {
	*bench
	widener store.Widener
	rule    *store.Rule
	network netip.Prefix
}

func (b *widenBench) ban(key string, left time.Duration, from int) {
	b.Helper()
	if err := b.widener.NoteBan(context.Background(), b.rule, b.network, key, left, from); err != nil {
		b.Fatal(err)
	}
}

func (b *widenBench) pass(keys ...string) {
	b.Helper()
	if err := b.widener.NotePassed(context.Background(), b.rule, b.network, keys); err != nil {
		b.Fatal(err)
	}
}

// judge checks a decision, in the form "verdict banned passed".
func (b *widenBench) judge(what, want string, by store.Widen) {
	b.Helper()
	w, err := b.widener.Judge(context.Background(), b.rule, b.network, by)
	if err != nil {
		b.Fatal(err)
	}
	equal(b, what, fmt.Sprint(w.Verdict, w.Banned, w.Passed), want)
}

// knows checks the suspects and the decisions that hold, in the form "suspects decided".
func (b *widenBench) knows(what, want string) store.Widenings {
	b.Helper()
	all, err := b.widener.Widenings(context.Background(), b.rule)
	if err != nil {
		b.Fatal(err)
	}
	equal(b, what, fmt.Sprint(len(all.Suspects), len(all.Decided)), want)
	return all
}

// widens tests the counts of bans that widen to networks, if the store has them.
func widens(t *testing.T, open Open) {
	b := &widenBench{bench: start(t, open), rule: Rule(t, "zone /1", "token_bucket", per(10, time.Minute)), network: netip.MustParsePrefix("2001:db8::/48")}
	var ok bool
	if b.widener, ok = b.store.(store.Widener); !ok {
		t.Skip("the store does not count bans of networks")
	}
	by := store.Widen{From: 3, Innocent: 1, For: time.Hour}
	b.knows("without any ban", "0 0")
	b.judge("without any ban", "0 0 0", by)
	for range 5 { // of one key, they count once
		b.ban("a", time.Hour, 3)
	}
	b.ban("b", time.Hour, 3)
	b.pass("x", "y")
	b.knows("with two bans", "0 0")
	b.ban("c", time.Hour, 3)
	all := b.knows("with three bans", "1 0")
	if s := all.Suspects[0]; s.Network != b.network || s.For < 0 || s.For > time.Minute {
		t.Errorf("the suspect is %+v", s)
	}
	b.pass("x", "y", "a")
	b.judge("while two others pass", "1 3 2", by)
	all = b.knows("spared", "0 1")
	if d := all.Decided[0]; d.Network != b.network || d.Verdict != store.Spared || d.Banned != 3 || d.Passed != 2 || d.Left > store.SparedFor || d.Left < store.SparedFor-time.Minute {
		t.Errorf("the decision is %+v", d)
	}
	b.ban("d", time.Hour, 3)
	b.knows("after another ban", "0 1")

	b.network = netip.MustParsePrefix("203.0.113.0/24")
	for _, key := range []string{"a", "b", "c", "d"} {
		b.ban(key, time.Hour, 4)
	}
	b.ban("d", 0, 4) // an operator has ended it
	b.judge("while only three are banned", "0 3 0", store.Widen{From: 4, For: time.Hour})
	b.ban("d", time.Hour, 4)
	b.pass("x", "x")
	b.judge("while one other passes", "2 4 1", by)
	b.judge("again", "0 0 0", by)
	b.knows("widened", "0 2")
	b.ban("e", time.Hour, 1)
	b.knows("after a ban that began meanwhile", "0 2")

	b.network = netip.MustParsePrefix("203.0.112.0/24")
	b.ban("a", time.Hour, 2)
	b.ban("b", time.Second, 2)
	b.wait(2 * time.Second)
	b.judge("after the end of a ban", "0 1 0", store.Widen{From: 2, For: time.Second})
	b.ban("b", time.Hour, 2)
	b.judge("for a second", "2 2 0", store.Widen{From: 2, For: time.Second})
	b.wait(2 * time.Second)
	b.ban("c", time.Hour, 2)
	b.knows("the bans so far count no longer", "0 2")
	b.ban("d", time.Hour, 2)
	b.knows("after two new ones", "1 2")
	b.bansOnce()
	b.widenBounds(by)
}

// bansOnce: a ban that widens leaves what the network has until that ends.
func (b *widenBench) bansOnce() {
	for _, before := range []store.Override{{Kind: store.KindExempt}, {Kind: store.KindBanned}, {Kind: store.KindExempt, For: time.Second}, {}} {
		ctx, of := context.Background(), b.widener.Networks(b.rule)
		if before.Kind != store.KindNone {
			if err := b.widener.SetNetwork(ctx, b.rule, b.network, before); err != nil {
				b.Fatal(err)
			}
		}
		ban := func(what string, want bool) {
			b.Helper()
			made, err := b.widener.BanNetwork(ctx, b.rule, b.network, store.Override{Kind: store.KindBanned, For: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			has := of.Get(b.network)
			equal(b, fmt.Sprintf("%s %v", what, before), fmt.Sprint(made, has.Override.Kind), fmt.Sprint(want, map[bool]store.Kind{true: store.KindBanned, false: before.Kind}[want]))
		}
		if ban("a ban beside", before.Kind == store.KindNone); before.For > 0 {
			b.wait(2 * time.Second)
			ban("a ban after the end of", true)
		}
		if err := b.widener.ClearNetwork(ctx, b.rule, b.network); err != nil {
			b.Fatal(err)
		}
	}
}

// widenBounds: suspects are bounded, and those of a zone are not those of another.
func (b *widenBench) widenBounds(by store.Widen) {
	for i := range store.MaxSuspects + 8 {
		b.network = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
		b.ban("a", time.Hour, 1)
	}
	b.knows("with more suspects than there is room for", fmt.Sprint(store.MaxSuspects, " 2"))
	b.judge("one without room", "0 0 0", by)
	b.rule = Rule(b, "zone", "token_bucket", per(10, time.Minute))
	b.knows("in another zone", "0 0")
}
