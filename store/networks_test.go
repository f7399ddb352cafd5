package store_test

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// slowNetworks are networks as a list, which is searched from one end to the other.
type slowNetworks map[netip.Prefix]struct {
	kind  store.Kind
	until int64
}

// find returns the kind that decides for a key.
func (s slowNetworks) find(key netip.Prefix, now int64) store.Kind {
	longest, kind := -1, store.KindNone
	for network, o := range s {
		within := network.Contains(key.Addr()) && network.Bits() <= key.Bits()
		if within && network.Bits() > longest && (o.until == 0 || o.until > now) {
			longest, kind = network.Bits(), o.kind
		}
	}
	return kind
}

func networkRule(t testing.TB) *store.Rule {
	t.Helper()
	algorithm, err := algorithms.Get("token_bucket")
	if err != nil {
		t.Fatal(err)
	}
	rule, err := store.NewRule("zone", algorithm, algorithms.Limit{Events: 10, Window: time.Minute}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// made returns a network as a store makes it.
func made(t interface{ Fatal(...any) }, rule *store.Rule, prefix netip.Prefix, o store.Override, now, until int64) *store.Network {
	kind, tail, err := rule.PrepareNetwork(prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	value := string([]byte{kind, byte(until >> 56), byte(until >> 48), byte(until >> 40), byte(until >> 32), byte(until >> 24), byte(until >> 16), byte(until >> 8), byte(until)}) + tail
	network, err := store.ParseNetwork(prefix, value, now, now)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

// TestNetworksEqualAList: whatever is set, removed or ends, a key finds what a search through all networks finds.
func TestNetworksEqualAList(t *testing.T) {
	rule := networkRule(t)
	drawPrefix := func(t *rapid.T) netip.Prefix {
		// Few addresses, so that networks are within one another.
		if rapid.Bool().Draw(t, "IPv6") {
			a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(rapid.IntRange(0, 3).Draw(t, "a")), 0, byte(rapid.IntRange(0, 7).Draw(t, "b"))})
			return netip.PrefixFrom(a, rapid.IntRange(32, 64).Draw(t, "bits")).Masked()
		}
		a := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 2).Draw(t, "a")), byte(rapid.IntRange(0, 3).Draw(t, "b")), byte(rapid.IntRange(0, 9).Draw(t, "c"))})
		return netip.PrefixFrom(a, rapid.IntRange(8, 32).Draw(t, "bits")).Masked()
	}
	rapid.Check(t, func(t *rapid.T) {
		now := int64(1)
		all, slow := store.NewNetworks(func() int64 { return now }), make(slowNetworks)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			fresh := rapid.IntRange(0, 15).Draw(t, "fresh") == 0
			if fresh {
				clear(slow)
			}
			var changes []store.NetworkChange
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				prefix := drawPrefix(t)
				if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
					delete(slow, prefix)
					changes = append(changes, store.NetworkChange{Prefix: prefix})
					continue
				}
				o := store.Override{Kind: store.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))}
				if o.Kind == store.KindLimit {
					o.Limit.Events = 3
				}
				until := int64(0)
				if rapid.Bool().Draw(t, "ends") {
					until = now + int64(rapid.IntRange(1, 5).Draw(t, "for"))
				}
				slow[prefix] = struct {
					kind  store.Kind
					until int64
				}{o.Kind, until}
				changes = append(changes, store.NetworkChange{Prefix: prefix, Network: made(t, rule, prefix, o, now, until)})
			}
			all.Change(fresh, changes...)
			if now += int64(rapid.IntRange(0, 2).Draw(t, "passes")); rapid.Bool().Draw(t, "sweep") {
				all.Sweep()
			}
			for range 10 {
				key := drawPrefix(t)
				got, want := store.KindNone, slow.find(key, now)
				if n := all.Find(key); n != nil {
					got = n.Override.Kind
				}
				if got != want {
					t.Fatalf("%v: %v, want %v", key, got, want)
				}
			}
			listed, want := 0, 0
			for range all.All() {
				listed++
			}
			for _, o := range slow {
				if o.kind != store.KindNone && (o.until == 0 || o.until > now) {
					want++
				}
			}
			if listed != want || want > 0 && !all.Any() {
				t.Fatalf("%d are listed, want %d", listed, want)
			}
		}
	})
}

// TestNoNetworks: without networks, a request looks at one pointer, and a look allocates nothing with them either. Exceptions
// alone count as none, and what was counted outlives a change.
func TestNoNetworks(t *testing.T) {
	var none *store.Networks
	prefix, key := netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("203.0.113.7/32")
	if none.Any() || none.Find(key) != nil || none.Get(prefix) != nil {
		t.Error("nil has networks")
	}
	rule, all := networkRule(t), store.NewNetworks(func() int64 { return 1 })
	all.Change(false, store.NetworkChange{Prefix: key, Network: made(t, rule, key, store.Override{}, 1, 0)})
	if all.Any() {
		t.Error("an exception counts as a network")
	}
	banned := store.Override{Kind: store.KindBanned, Note: "attack"}
	all.Change(false, store.NetworkChange{Prefix: prefix, Network: made(t, rule, prefix, banned, 1, 0)})
	other := netip.MustParsePrefix("203.0.113.8/32")
	all.Find(other).Count()
	all.Change(false, store.NetworkChange{Prefix: prefix, Network: made(t, rule, prefix, banned, 1, 0)})
	if n := all.Find(other); n == nil || n.Requests() != 1 || n.Override.Note != "attack" || all.Find(key) != nil {
		t.Errorf("%+v; and for the exception %+v", n, all.Find(key))
	}
	if n := testing.AllocsPerRun(100, func() { all.Find(other) }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	for _, wrong := range []string{"203.0.113.7/24", "2001:db8::1/48"} {
		if _, _, err := rule.PrepareNetwork(netip.MustParsePrefix(wrong), banned); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// BenchmarkNetworks looks among 100,000 networks, and reports what one of them takes.
func BenchmarkNetworks(b *testing.B) {
	rule, all := networkRule(b), store.NewNetworks(func() int64 { return 1 })
	var changes []store.NetworkChange
	keys := make([]netip.Prefix, 0, 1<<14)
	for i := range 100_000 {
		a := netip.AddrFrom4([4]byte{byte(i * 7), byte(i >> 8), byte(i), byte(i * 13)})
		prefix := netip.PrefixFrom(a, 12+i%20).Masked()
		changes = append(changes, store.NetworkChange{Prefix: prefix, Network: made(b, rule, prefix, store.Override{Kind: store.KindBanned}, 1, 0)})
		if len(keys) < cap(keys) {
			keys = append(keys, netip.PrefixFrom(a, 32))
		}
	}
	all.Change(true, changes...)
	i := 0
	for b.Loop() {
		all.Find(keys[i%len(keys)])
		i++
	}
}
