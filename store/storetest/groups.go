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

// groupBench is a store that keeps overrides of groups.
type groupBench struct {
	*networkBench
	grouper store.Grouper
}

// by is the placeholder of all groups but one.
const by = "{http.request.header.User-Agent}"

func (b *groupBench) setGroup(value string, o store.Override) {
	b.Helper()
	if err := b.grouper.SetGroup(context.Background(), b.rule, store.Group{By: by, Value: value}, o); err != nil {
		b.Fatalf("%q: %v", value, err)
	}
}

func (b *groupBench) clearGroup(value string) {
	b.Helper()
	if err := b.grouper.ClearGroup(context.Background(), b.rule, store.Group{By: by, Value: value}); err != nil {
		b.Fatalf("%q: %v", value, err)
	}
}

// groupDecides checks how the group decides about a key; with KindNone it does not.
func (b *groupBench) groupDecides(key, value string, kind store.Kind) {
	b.Helper()
	is, of := store.KindNone, store.Group{By: by, Value: value}
	if n := b.grouper.Networks(b.rule).FindGroup(netip.MustParsePrefix(key), of); n != nil {
		if is = n.Override.Kind; n.Group != of || !n.IsGroup() {
			b.Errorf("group %q finds %q", of, n.Group)
		}
	}
	if is != kind {
		b.Errorf("for %s, group %q decides: %v; want %v", key, value, is, kind)
	}
}

// groups tests the overrides of groups, if the store has them.
func groups(t *testing.T, open Open) {
	b := &groupBench{networkBench: &networkBench{bench: start(t, open), rule: Rule(t, "zone /1", "token_bucket", per(10, time.Minute))}}
	var ok bool
	if b.grouper, ok = b.store.(store.Grouper); !ok {
		t.Skip("the store keeps no groups")
	}
	b.networker = b.grouper
	all := b.grouper.Networks(b.rule)
	equal(t, "without any", all.AnyGroup(), false)
	hostile := []string{"\x00\xff\xfe/%2F{}\r\n", "group/x", "203.0.113.0/24", " ", strings.Repeat("\xf0", store.MaxGroup)}
	for _, value := range hostile {
		b.setGroup(value, store.Override{Kind: store.KindBanned, Note: "bots", By: "me", Since: time.Unix(1_700_000_000, 0), For: time.Hour})
		b.groupDecides("203.0.113.7/32", value, store.KindBanned)
	}
	b.decides("203.0.113.7/32", "", store.KindNone)
	n := all.GetGroup(store.Group{By: by, Value: hostile[0]})
	if o := n.Override; o.Note != "bots" || o.By != "me" || o.Since.Unix() != 1_700_000_000 || all.Left(n) > time.Hour || all.Left(n) < 59*time.Minute {
		t.Errorf("the group with a note: %+v, %v left", o, all.Left(n))
	}
	for _, other := range []string{"", "\x00", hostile[4] + "\xf0"} {
		b.groupDecides("203.0.113.7/32", other, store.KindNone)
	}
	if found := all.FindGroup(netip.Prefix{}, store.Group{By: "{other}", Value: "group/x"}); found != nil {
		t.Errorf("another placeholder finds %+v", found)
	}
	for _, value := range hostile {
		b.clearGroup(value)
		b.clearGroup(value)
		b.groupDecides("203.0.113.7/32", value, store.KindNone)
	}
	equal(t, "after all are cleared", all.Any(), false)
	t.Run("Networks", b.groupsAndNetworks)
	t.Run("Changes", b.groupChanges)
}

// groupsAndNetworks: networks, and keys with overrides of their own, go before groups.
func (b *groupBench) groupsAndNetworks(t *testing.T) {
	b.setGroup("bot", store.Override{Kind: store.KindBanned})
	b.set("203.0.113.7/32", store.Override{})
	b.groupDecides("203.0.113.7/32", "bot", store.KindNone)
	b.groupDecides("203.0.113.8/32", "bot", store.KindBanned)
	b.clear("203.0.113.7/32")
	b.groupDecides("203.0.113.7/32", "bot", store.KindBanned)
	b.set("203.0.113.0/24", store.Override{Kind: store.KindExempt})
	b.groupDecides("203.0.113.8/32", "bot", store.KindNone)
	b.groupDecides("203.0.114.8/32", "bot", store.KindBanned)
	b.clear("203.0.113.0/24")
	b.clearGroup("bot")
	equal(t, "in the end", b.grouper.Networks(b.rule).Any(), false)
}

// groupChanges: groups are those of their zone, are listed, replaced and taken away, and are no keys.
func (b *groupBench) groupChanges(t *testing.T) {
	all, ctx := b.grouper.Networks(b.rule), context.Background()
	b.setGroup("b", store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 3}})
	b.setGroup("a", store.Override{Kind: store.KindBanned, For: store.MinOverride})
	if n := all.GetGroup(store.Group{By: by, Value: "b"}); n.Algorithm != "token_bucket" || n.Override.Limit.Events != 3 || all.Left(n) != 0 {
		t.Errorf("the group with a limit: %+v", n)
	}
	all.FindGroup(netip.Prefix{}, store.Group{By: by, Value: "b"}).Count()
	b.setGroup("b", store.Override{Kind: store.KindExempt})
	var listed []string
	for n := range all.AllGroups() {
		listed = append(listed, fmt.Sprint(n.Group.Value, " ", n.Override.Kind, " ", n.Requests()))
	}
	equal(t, "the list", strings.Join(listed, ", "), "a banned 0, b exempt 1")
	equal(t, "another zone", b.grouper.Networks(Rule(t, "zone", "token_bucket", per(10, time.Minute))).AnyGroup(), false)
	if lister, ok := b.store.(store.Lister); ok {
		keys, _, err := lister.Overrides(ctx, b.rule, "", 100)
		if err != nil || len(keys) > 0 {
			t.Errorf("the overrides of keys are %v, %v", keys, err)
		}
	}
	banned := store.Override{Kind: store.KindBanned}
	for _, wrong := range []store.Group{{By: by}, {Value: "a"}, {By: by, Value: strings.Repeat("x", store.MaxGroup+1)}} {
		if err := b.grouper.SetGroup(ctx, b.rule, wrong, banned); err == nil {
			t.Errorf("group %.40q gets an override", wrong)
		}
	}
	if err := b.grouper.SetGroup(ctx, b.rule, store.Group{By: by, Value: "c"}, store.Override{}); err == nil {
		t.Error("a group is an exception")
	}
	b.clearGroup("a")
	b.clearGroup("b")
	equal(t, "in the end", all.Any(), false)
}
