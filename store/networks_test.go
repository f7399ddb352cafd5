package store_test

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
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
	return storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 10, Window: time.Minute})
}

// made returns a network as a store makes it.
func made(t interface{ Fatal(...any) }, rule *store.Rule, prefix netip.Prefix, o store.Override, now, until int64) *store.Network {
	prepared := new(store.PreparedOverride) // an exception
	if o.Kind != store.KindNone {
		var err error
		if prepared, err = rule.PrepareOverride(o); err != nil {
			t.Fatal(err)
		}
	}
	kind, tail := prepared.Wire()
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
	deep.Property(t, 1, func(t *rapid.T) {
		now := int64(1)
		all, slow := store.NewNetworks(func() int64 { return now }), make(slowNetworks)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			fresh := rapid.IntRange(0, 15).Draw(t, "fresh") == 0
			if fresh {
				clear(slow)
			}
			changes := make(map[netip.Prefix]*store.Network)
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				prefix := drawPrefix(t)
				if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
					delete(slow, prefix)
					changes[prefix] = nil
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
				changes[prefix] = made(t, rule, prefix, o, now, until)
			}
			all.Change(fresh, changes)
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

// one is a change of one network, which does not end.
func one(t *testing.T, rule *store.Rule, prefix netip.Prefix, o store.Override) map[netip.Prefix]*store.Network {
	return map[netip.Prefix]*store.Network{prefix: made(t, rule, prefix, o, 1, 0)}
}

// TestListWhileTheLastNetworkGoes: a list of networks is whole and ends, even if the last one is removed meanwhile.
func TestListWhileTheLastNetworkGoes(t *testing.T) {
	rule, prefix := networkRule(t), netip.MustParsePrefix("10.0.0.0/8")
	var all *store.Networks
	lists := false
	all = store.NewNetworks(func() int64 {
		if lists { // the list has begun, and looks at the clock
			lists = false
			all.Change(false, map[netip.Prefix]*store.Network{prefix: nil})
		}
		return 1
	})
	all.Change(false, one(t, rule, prefix, store.Override{Kind: store.KindBanned}))
	lists = true
	if listed := slices.Collect(all.All()); len(listed) != 1 || listed[0].Prefix != prefix {
		t.Errorf("%v are listed, want the network that was there when the list began", listed)
	}
	if listed := slices.Collect(all.All()); lists || len(listed) > 0 {
		t.Errorf("%v are listed after it was removed", listed)
	}
}

// TestNoNetworks: without networks, a request looks at one pointer, and a look allocates nothing with them either. Exceptions
// are none, and what was counted outlives a change.
func TestNoNetworks(t *testing.T) {
	var none *store.Networks
	prefix, key := netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("203.0.113.7/32")
	if none.Any() || none.Find(key) != nil || none.Override(prefix) != (store.Override{}) || len(slices.Collect(none.All())) > 0 {
		t.Error("nil has networks")
	}
	rule, all := networkRule(t), store.NewNetworks(func() int64 { return 1 })
	all.Change(false, one(t, rule, key, store.Override{}))
	if all.Find(key) != nil || len(slices.Collect(all.All())) > 0 {
		t.Error("an exception counts as a network")
	}
	banned := store.Override{Kind: store.KindBanned, Note: "attack"}
	all.Change(false, one(t, rule, prefix, banned))
	other := netip.MustParsePrefix("203.0.113.8/32")
	all.Find(other).Count()
	all.Change(false, one(t, rule, prefix, banned))
	if n := all.Find(other); n == nil || n.Requests() != 1 || n.Override.Note != "attack" || all.Find(key) != nil {
		t.Errorf("%+v; and for the exception %+v", n, all.Find(key))
	}
	if n := testing.AllocsPerRun(100, func() { all.Find(other) }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
	for _, wrong := range []string{"203.0.113.7/24", "2001:db8::1/48"} {
		if err := rule.WriteOverride(store.Selector{Network: netip.MustParsePrefix(wrong)}, banned, nil, nil); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// TestBytesOfNetworks: a network of very many takes little memory, and each is there.
func TestBytesOfNetworks(t *testing.T) {
	n := 20_000
	if deep.Run() {
		n = 1_000_000
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	rule, all, changes := networkRule(t), store.NewNetworks(func() int64 { return 1 }), make(map[netip.Prefix]*store.Network, n)
	before := heap()
	for i := range n {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(i)<<8))), 16+i%17).Masked()
		if i%4 == 0 {
			prefix = netip.PrefixFrom(netip.AddrFrom16([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 0x2001<<48|uint64(i)), 0))), 64)
		}
		changes[prefix] = made(t, rule, prefix, store.Override{Kind: store.KindBanned}, 1, 0)
	}
	all.Change(true, changes)
	kept := 0
	for found := range all.All() {
		if kept++; all.Find(found.Prefix) == nil {
			t.Fatalf("%v is not found", found.Prefix)
		}
	}
	changes = nil
	if bytes := float64(heap()-before) / float64(kept); bytes > 1000 || kept < n/2 {
		t.Errorf("each of %d networks takes %.0f bytes", kept, bytes)
	}
	runtime.KeepAlive(all)
}

func TestSplit(t *testing.T) {
	const slow = 1000 * 24 * time.Hour
	for _, c := range []struct {
		algorithm     string
		events, burst int64
		n             int
		wantEvents    int64
		wantBurst     int64
		window        time.Duration
	}{
		{"token_bucket", 100, 0, 1, 100, 0, time.Minute},
		{"token_bucket", 100, 0, 4, 25, 0, time.Minute},
		{"token_bucket", 100, 250, 3, 33, 83, time.Minute},
		{"token_bucket", 100, 100, 1000, 1, 1, time.Minute},
		{"fixed_window", 5, 0, 2, 2, 0, time.Minute},
		{"sliding_window_log", 1, 0, 9, 1, 0, time.Minute},
		{"sliding_window_counter", 0, 0, 9, 0, 0, time.Minute},
		{"concurrency", 10, 0, 4, 2, 0, time.Minute},
		// Rounding makes no valid limit invalid: a third of 10 comes back in 3000 days at 1 per 1000, but half of 10 in 5000.
		{"token_bucket", 3, 10, 3, 1, 3, slow},
		{"token_bucket", 3, 10, 2, 1, 0, slow},
	} {
		limit := storetest.Limit(c.algorithm, c.events, c.window)
		limit.Burst = c.burst
		whole := storetest.Rule(t, "zone", c.algorithm, limit)
		part := whole.Split(c.n)
		got := part.Limit()
		if got.Events != c.wantEvents || got.Burst != c.wantBurst {
			t.Errorf("%s %d burst %d by %d: %d burst %d, want %d burst %d",
				c.algorithm, c.events, c.burst, c.n, got.Events, got.Burst, c.wantEvents, c.wantBurst)
		}
		if got.Window != limit.Window || got.Lease != limit.Lease || part.ID() != whole.ID() || part.Salt() != whole.Salt() {
			t.Errorf("%s: %+v is a part of %+v", c.algorithm, got, limit)
		}
	}
	if whole := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 9, Window: time.Minute}); whole.Split(0) != whole {
		t.Error("split for no process is not the whole")
	}
}
