package storetest

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// address is a key that is an address.
var address = store.Selector{Key: "203.0.113.7", Network: netip.MustParsePrefix("203.0.113.7/32")}

// network is an override of a network.
func network(prefix string) store.Selector {
	return store.Selector{Network: netip.MustParsePrefix(prefix)}
}

// decides checks which network decides for a key, and how.
func (r *ruled) decides(key, network string, kind store.Kind) {
	r.Helper()
	got, is := "", store.KindNone
	if n := r.Networks(r.rule).Find(netip.MustParsePrefix(key)); n != nil {
		got, is = n.Prefix.String(), n.Override.Kind
	}
	if got != network || is != kind {
		r.Errorf("for %s, %q decides: %v; want %q: %v", key, got, is, network, kind)
	}
}

// networks tests the overrides of networks, if the store has them.
func networks(b *bench) {
	r := b.ruled(Rule(b, "zone /1", "token_bucket", per(10, time.Minute)), nil)
	all := r.Networks(r.rule)
	equal(b, "without any", all.Any(), false)
	r.decides("203.0.113.7/32", "", store.KindNone)
	bots := store.Override{Kind: store.KindBanned, Note: "bots", By: "me", Since: time.Unix(1.7e9, 0), For: time.Hour}
	r.set(network("203.0.0.0/16"), bots)
	r.set(network("203.0.113.0/24"), store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 3}})
	r.set(network("203.0.113.128/25"), store.Override{Kind: store.KindExempt})
	r.set(address, store.Override{Kind: store.KindExempt})
	r.set(network("2001:db8::/48"), store.Override{Kind: store.KindBanned})
	if again := r.Networks(Rule(b, "zone /1", "token_bucket", per(20, time.Minute))); again != all || !all.Any() {
		b.Error("a zone has several sets of networks, or none")
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
		r.decides(want.key, want.network, want.kind)
	}
	o := all.Override(netip.MustParsePrefix("203.0.0.0/16"))
	if o.Note != "bots" || o.By != "me" || o.Since.Unix() != 1.7e9 || o.For > time.Hour || o.For < 59*time.Minute {
		b.Errorf("the network with a note: %+v", o)
	}
	n := all.Find(netip.MustParsePrefix("203.0.113.0/24"))
	if n.Override.Algorithm != "token_bucket" || n.Override.Limit.Events != 3 || all.Left(n) != 0 {
		b.Errorf("the network with a limit: %+v", n)
	}
	r.networksApart()
	r.networkChanges()
	r.unbannedNetworks()
}

// networksApart: networks are those of their zone, and no keys.
func (r *ruled) networksApart() {
	equal(r, "another zone", r.Networks(Rule(r, "zone", "token_bucket", per(10, time.Minute))).Any(), false)
	for of, want := range map[store.Selector]store.Kind{
		{Key: "203.0.0.0/16"}:   store.KindNone,
		{Key: "203.0.113.7/32"}: store.KindNone,
		address:                 store.KindExempt,
		network("203.0.0.0/16"): store.KindBanned,
		network("203.0.0.0/15"): store.KindNone,
	} {
		o, err := r.GetRule(r.Context(), r.rule, of)
		r.ok(err)
		equal(r, "the override of "+of.String(), o.Kind, want)
	}
	if listed := r.listed(r.overrideList, r.rule); len(listed) != 1 || listed[address.Key].Kind != store.KindExempt {
		r.Errorf("the overrides of keys are %v", listed)
	}
	for prefix, o := range map[string]store.Override{
		"203.0.113.7/24": {Kind: store.KindBanned},
		"203.0.113.0/24": {Kind: store.KindBanned, For: time.Microsecond},
		"203.0.112.0/24": {Kind: store.KindLimit, Limit: algorithms.Limit{Events: -1}},
	} {
		if r.SetRule(r.Context(), r.rule, network(prefix), o) == nil {
			r.Errorf("the network %s gets an override that is not valid: %+v", prefix, o)
		}
	}
	r.decides("203.0.113.8/32", "203.0.113.0/24", store.KindLimit)
}

// networkChanges: networks are listed, replaced and taken away. Their end is that of another clock: that of the process.
func (r *ruled) networkChanges() {
	all := r.Networks(r.rule)
	all.Find(netip.MustParsePrefix("203.0.113.8/32")).Count()
	listed := func(what, want string) {
		r.Helper()
		var found []string
		for n := range all.All() {
			found = append(found, fmt.Sprint(n.Prefix, " ", n.Override.Kind, " ", n.Requests()))
		}
		equal(r, what, strings.Join(found, ", "), want)
	}
	listed("the list", "203.0.0.0/16 banned 0, 203.0.113.0/24 limit 1, 203.0.113.128/25 exempt 0, 2001:db8::/48 banned 0")
	none := store.Override{}
	r.set(network("203.0.113.0/24"), store.Override{Kind: store.KindExempt})
	r.decides("203.0.113.8/32", "203.0.113.0/24", store.KindExempt)
	for _, prefix := range []string{"203.0.0.0/16", "203.0.0.0/16", "2001:db8::/48"} {
		r.set(network(prefix), none)
	}
	r.set(address, none)
	r.decides("203.0.112.1/32", "", store.KindNone)
	r.decides("203.0.113.7/32", "203.0.113.0/24", store.KindExempt)
	r.set(network("203.0.113.0/28"), store.Override{Kind: store.KindBanned, For: store.MinOverride})
	r.decides("203.0.113.7/32", "203.0.113.0/28", store.KindBanned)
	listed("the list after changes", "203.0.113.0/24 exempt 1, 203.0.113.0/28 banned 0, 203.0.113.128/25 exempt 0")
	for _, prefix := range []string{"203.0.113.0/24", "203.0.113.128/25", "203.0.113.0/28"} {
		r.set(network(prefix), none)
	}
	listed("in the end", "")
}

// unbannedNetworks: a key that is unbanned is no exception any more, and a network is gone.
func (r *ruled) unbannedNetworks() {
	r.set(network("203.0.113.0/24"), store.Override{Kind: store.KindBanned})
	r.set(address, store.Override{Kind: store.KindBanned})
	r.decides("203.0.113.7/32", "", store.KindNone)
	for _, of := range []store.Selector{address, network("203.0.113.0/24")} {
		r.decides("203.0.113.8/32", "203.0.113.0/24", store.KindBanned)
		r.unban(of)
		r.has(of, store.Override{})
	}
	equal(r, "unbanned", r.Networks(r.rule).Any(), false)
}
