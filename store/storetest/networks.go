package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// networkBench is a store that keeps overrides of networks.
type networkBench struct {
	*bench
	overrider store.Overrider
	rule      *store.Rule
}

// address is a key that is an address.
var address = store.Selector{Key: "203.0.113.7", Network: netip.MustParsePrefix("203.0.113.7/32")}

func (b *networkBench) set(network string, o store.Override) {
	b.Helper()
	b.setRule(store.Selector{Network: netip.MustParsePrefix(network)}, o)
}

func (b *networkBench) setRule(of store.Selector, o store.Override) {
	b.Helper()
	if err := b.overrider.SetRule(context.Background(), b.rule, of, o); err != nil {
		b.Fatalf("%v: %v", of, err)
	}
}

func (b *networkBench) clear(network string) {
	b.Helper()
	b.set(network, store.Override{})
}

// decides checks which network decides for a key, and how.
func (b *networkBench) decides(key, network string, kind store.Kind) {
	b.Helper()
	got, is := "", store.KindNone
	if n := b.overrider.Networks(b.rule).Find(netip.MustParsePrefix(key)); n != nil {
		got, is = n.Prefix.String(), n.Override.Kind
	}
	if got != network || is != kind {
		b.Errorf("for %s, %q decides: %v; want %q: %v", key, got, is, network, kind)
	}
}

// networks tests the overrides of networks, if the store has them.
func networks(t *testing.T, open Open) {
	b := &networkBench{bench: start(t, open), rule: Rule(t, "zone /1", "token_bucket", per(10, time.Minute))}
	b.overrider = b.bench.overrider(t)
	all := b.overrider.Networks(b.rule)
	equal(t, "without any", all.Any(), false)
	b.decides("203.0.113.7/32", "", store.KindNone)
	b.set("203.0.0.0/16", store.Override{Kind: store.KindBanned, Note: "bots", By: "me", Since: time.Unix(1_700_000_000, 0), For: time.Hour})
	b.set("203.0.113.0/24", store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 3}})
	b.set("203.0.113.128/25", store.Override{Kind: store.KindExempt})
	b.setRule(address, store.Override{Kind: store.KindExempt})
	b.set("2001:db8::/48", store.Override{Kind: store.KindBanned})
	if again := b.overrider.Networks(Rule(t, "zone /1", "token_bucket", per(20, time.Minute))); again != all || !all.Any() {
		t.Error("a zone has several sets of networks, or none")
	}
	for _, want := range []struct {
		key, network string
		kind         store.Kind
	}{
		{"203.0.112.1/32", "203.0.0.0/16", store.KindBanned},
		{"203.0.113.8/32", "203.0.113.0/24", store.KindLimit},
		{"203.0.113.200/32", "203.0.113.128/25", store.KindExempt},
		{"203.0.113.7/32", "", store.KindNone},
		{"203.0.113.0/24", "203.0.113.0/24", store.KindLimit},
		{"203.0.112.0/23", "203.0.0.0/16", store.KindBanned},
		{"203.0.0.0/15", "", store.KindNone},
		{"2001:db8:0:7::/64", "2001:db8::/48", store.KindBanned},
		{"2001:db8:1::/64", "", store.KindNone},
	} {
		b.decides(want.key, want.network, want.kind)
	}
	o := all.Override(netip.MustParsePrefix("203.0.0.0/16"))
	if o.Note != "bots" || o.By != "me" || o.Since.Unix() != 1_700_000_000 || o.For > time.Hour || o.For < 59*time.Minute {
		t.Errorf("the network with a note: %+v", o)
	}
	if n := all.Find(netip.MustParsePrefix("203.0.113.0/24")); n.Algorithm != "token_bucket" || n.Override.Limit.Events != 3 || all.Left(n) != 0 {
		t.Errorf("the network with a limit: %+v", n)
	}
	t.Run("Apart", b.networksApart)
	t.Run("Changes", b.networkChanges)
}

// networksApart: networks are those of their zone, and no keys.
func (b *networkBench) networksApart(t *testing.T) {
	equal(t, "another zone", b.overrider.Networks(Rule(t, "zone", "token_bucket", per(10, time.Minute))).Any(), false)
	ctx := context.Background()
	for of, want := range map[store.Selector]store.Kind{
		{Key: "203.0.0.0/16"}:   store.KindNone,
		{Key: "203.0.113.7/32"}: store.KindNone,
		address:                 store.KindExempt,
		{Network: netip.MustParsePrefix("203.0.0.0/16")}: store.KindBanned,
		{Network: netip.MustParsePrefix("203.0.0.0/15")}: store.KindNone,
	} {
		if o, err := b.overrider.GetRule(ctx, b.rule, of); err != nil || o.Kind != want {
			t.Errorf("the override of %v is %v, %v", of, o, err)
		}
	}
	listed := allListed(t, func(cursor string) ([]store.Listed, string, error) {
		return b.overrider.Overrides(ctx, b.rule, cursor, 100)
	})
	if len(listed) != 1 || listed[address.Key].Kind != store.KindExempt {
		t.Errorf("the overrides of keys are %v", listed)
	}
	for network, o := range map[string]store.Override{
		"203.0.113.7/24": {Kind: store.KindBanned},
		"203.0.113.0/24": {Kind: store.KindBanned, For: time.Microsecond},
		"203.0.112.0/24": {Kind: store.KindLimit, Limit: algorithms.Limit{Events: -1}},
	} {
		if err := b.overrider.SetRule(ctx, b.rule, store.Selector{Network: netip.MustParsePrefix(network)}, o); err == nil {
			t.Errorf("the network %s gets an override that is not valid: %+v", network, o)
		}
	}
	b.decides("203.0.113.8/32", "203.0.113.0/24", store.KindLimit)
}

// networkChanges: networks are listed, replaced and taken away. Their end is that of another clock: that of the process.
func (b *networkBench) networkChanges(t *testing.T) {
	all := b.overrider.Networks(b.rule)
	all.Find(netip.MustParsePrefix("203.0.113.8/32")).Count()
	listed := func() string {
		var found []string
		for n := range all.All() {
			found = append(found, fmt.Sprint(n.Prefix, " ", n.Override.Kind, " ", n.Requests()))
		}
		return strings.Join(found, ", ")
	}
	equal(t, "the list", listed(), "203.0.0.0/16 banned 0, 203.0.113.0/24 limit 1, 203.0.113.128/25 exempt 0, 2001:db8::/48 banned 0")
	b.set("203.0.113.0/24", store.Override{Kind: store.KindExempt})
	b.decides("203.0.113.8/32", "203.0.113.0/24", store.KindExempt)
	b.clear("203.0.0.0/16")
	b.clear("203.0.0.0/16")
	b.setRule(address, store.Override{})
	b.clear("2001:db8::/48")
	b.decides("203.0.112.1/32", "", store.KindNone)
	b.decides("203.0.113.7/32", "203.0.113.0/24", store.KindExempt)
	b.set("203.0.113.0/28", store.Override{Kind: store.KindBanned, For: store.MinOverride})
	b.decides("203.0.113.7/32", "203.0.113.0/28", store.KindBanned)
	equal(t, "the list after changes", listed(), "203.0.113.0/24 exempt 1, 203.0.113.0/28 banned 0, 203.0.113.128/25 exempt 0")
	b.clear("203.0.113.0/24")
	b.clear("203.0.113.128/25")
	b.clear("203.0.113.0/28")
	equal(t, "in the end", listed(), "")

	b.set("203.0.113.0/24", store.Override{Kind: store.KindBanned})
	b.setRule(address, store.Override{Kind: store.KindBanned})
	b.decides("203.0.113.7/32", "", store.KindNone)
	for _, of := range []store.Selector{address, {Network: netip.MustParsePrefix("203.0.113.0/24")}} {
		b.decides("203.0.113.8/32", "203.0.113.0/24", store.KindBanned)
		if err := b.overrider.Unban(context.Background(), b.rule, of); err != nil {
			t.Fatal(err)
		}
		if o, err := b.overrider.GetRule(context.Background(), b.rule, of); err != nil || o.Kind != store.KindNone {
			t.Errorf("unbanned, the override of %v is %v, %v", of, o, err)
		}
	}
	equal(t, "unbanned", all.Any(), false)
}
