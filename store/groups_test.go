package store_test

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// ofGroup returns the override of a group as a store makes it.
func ofGroup(t interface{ Fatal(...any) }, rule *store.Rule, group store.Group, o store.Override, now, until int64) *store.Network {
	kind, tail, err := rule.PrepareGroup(group, o)
	if err != nil {
		t.Fatal(err)
	}
	made, err := store.ParseGroup(group, string(binary.BigEndian.AppendUint64([]byte{kind}, uint64(until)))+tail, now, now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestGroupsEqualAList: whatever is set, removed or ends, the group of a request finds what a slow model finds: nothing if a
// network around the key is there, or an exception, and else what was set last for the group.
func TestGroupsEqualAList(t *testing.T) {
	rule := networkRule(t)
	type known struct {
		kind  store.Kind
		until int64
	}
	values := []string{"a", "b", "\xff\x00", "{c}/d", strings.Repeat("e", store.MaxGroup)}
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/24")}
	keys := []netip.Prefix{{}, networks[1], netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("192.0.2.1/32")}
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1)
		all, around, slow := store.NewNetworks(func() int64 { return now }), make(slowNetworks), make(map[store.Group]known)
		drawGroup := func() store.Group {
			return store.Group{By: rapid.SampledFrom([]string{"{x}", "{y}"}).Draw(t, "by"), Value: rapid.SampledFrom(values).Draw(t, "value")}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			fresh := rapid.IntRange(0, 15).Draw(t, "fresh") == 0
			if fresh {
				clear(slow)
				clear(around)
			}
			var changes []store.NetworkChange
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				kind, until := store.Kind(rapid.IntRange(0, 2).Draw(t, "kind")), int64(0)
				if rapid.Bool().Draw(t, "ends") {
					until = now + int64(rapid.IntRange(1, 5).Draw(t, "for"))
				}
				switch group := drawGroup(); {
				case rapid.IntRange(0, 3).Draw(t, "network") == 0:
					prefix := rapid.SampledFrom(networks).Draw(t, "prefix")
					around[prefix] = known{kind, until}
					changes = append(changes, store.NetworkChange{Prefix: prefix, Network: made(t, rule, prefix, store.Override{Kind: kind}, now, until)})
				case kind == store.KindNone:
					delete(slow, group)
					changes = append(changes, store.NetworkChange{Group: group})
				default:
					slow[group] = known{kind, until}
					changes = append(changes, store.NetworkChange{Group: group, Network: ofGroup(t, rule, group, store.Override{Kind: kind}, now, until)})
				}
			}
			all.Change(fresh, changes...)
			if now += int64(rapid.IntRange(0, 2).Draw(t, "passes")); rapid.Bool().Draw(t, "sweep") {
				all.Sweep()
			}
			listed, living := 0, 0
			for range all.AllGroups() {
				listed++
			}
			for _, of := range slow {
				if of.until == 0 || of.until > now {
					living++
				}
			}
			if listed != living || living > 0 && (!all.AnyGroup() || !all.Any()) {
				t.Fatalf("%d groups are listed, want %d", listed, living)
			}
			for _, key := range keys {
				group, got, want := drawGroup(), store.KindNone, store.KindNone
				if of := slow[group]; (of.until == 0 || of.until > now) && !(key.IsValid() && around.covers(key, now)) {
					want = of.kind
				}
				if n := all.FindGroup(key, group); n != nil {
					got = n.Override.Kind
				}
				if got != want {
					t.Fatalf("%v, %q: %v, want %v", key, group, got, want)
				}
			}
		}
	})
}

// covers reports whether a network, or an exception, is around a key.
func (s slowNetworks) covers(key netip.Prefix, now int64) bool {
	for network, o := range s {
		if network.Contains(key.Addr()) && network.Bits() <= key.Bits() && (o.until == 0 || o.until > now) {
			return true
		}
	}
	return false
}

// TestNoGroups: without groups, a request looks at one pointer, and a look allocates nothing with them either. What was counted
// outlives a change, and no group has values that no override may have.
func TestNoGroups(t *testing.T) {
	var none *store.Networks
	key, bot := netip.MustParsePrefix("203.0.113.7/32"), store.Group{By: "{http.request.header.User-Agent}", Value: "bot"}
	if none.AnyGroup() || none.GetGroup(bot) != nil || none.FindGroup(key, bot) != nil {
		t.Error("nil has groups")
	}
	rule, all := networkRule(t), store.NewNetworks(func() int64 { return 1 })
	banned := store.Override{Kind: store.KindBanned, Note: "attack"}
	for range 2 {
		all.Change(false, store.NetworkChange{Group: bot, Network: ofGroup(t, rule, bot, banned, 1, 0)})
		all.FindGroup(key, bot).Count()
	}
	if n := all.FindGroup(key, bot); n.Requests() != 2 || n.Override.Note != "attack" || !n.IsGroup() || n.Group != bot {
		t.Errorf("the group: %+v", n)
	}
	if n := testing.AllocsPerRun(100, func() { all.FindGroup(key, bot) }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	for _, wrong := range []store.Group{
		{}, {By: bot.By}, {Value: "bot"}, {By: bot.By, Value: strings.Repeat("x", store.MaxGroup+1)}, {By: strings.Repeat("x", store.MaxGroup+1), Value: "bot"},
	} {
		if _, _, err := rule.PrepareGroup(wrong, banned); err == nil {
			t.Errorf("the group %.40q may have an override", wrong)
		}
	}
	if _, _, err := rule.PrepareGroup(bot, store.Override{}); err == nil {
		t.Error("a group may be an exception")
	}
	if _, err := store.ParseGroup(bot, string(make([]byte, 9))+"{}", 1, 1); err == nil {
		t.Error("a damaged override of a group has an effect")
	}
	all.Change(false, store.NetworkChange{Group: bot})
	if all.Any() || all.AnyGroup() {
		t.Error("a group that was removed is there")
	}
}

// BenchmarkGroups looks among a hundred thousand groups.
func BenchmarkGroups(b *testing.B) {
	rule, all := networkRule(b), store.NewNetworks(func() int64 { return 1 })
	key, groups := netip.MustParsePrefix("203.0.113.7/32"), make([]store.Group, 100_000)
	changes := make([]store.NetworkChange, len(groups))
	for i := range groups {
		groups[i] = store.Group{By: "{http.request.header.User-Agent}", Value: strings.Repeat("agent ", 10) + string(binary.BigEndian.AppendUint32(nil, uint32(i)))}
		changes[i] = store.NetworkChange{Group: groups[i], Network: ofGroup(b, rule, groups[i], store.Override{Kind: store.KindBanned}, 1, 0)}
	}
	all.Change(true, changes...)
	b.Run("Find", func(b *testing.B) {
		i := 0
		for b.Loop() {
			all.FindGroup(key, groups[i%len(groups)])
			i++
		}
	})
	b.Run("Change", func(b *testing.B) {
		for b.Loop() {
			all.Change(false, changes[0])
		}
	})
}
