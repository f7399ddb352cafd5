package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestNetworksOfAFleet: an attack from one /24, and traffic from everywhere, are spread over three instances. Each reports what has
// room. The sums have all networks above the share, and true counts are within the bounds.
func TestNetworksOfAFleet(t *testing.T) {
	const share = 0.02
	random := rand.New(rand.NewPCG(1, 2))
	truth, total := make(map[netip.Prefix]uint64), uint64(0)
	var all []*topk.Networks
	var read []*Networks
	for range 3 {
		counts := topk.NewNetworks(time.Minute)
		for i := range 20_000 {
			address := netip.AddrFrom4([4]byte{byte(random.IntN(200)), byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))})
			switch {
			case i%10 == 0:
				address = netip.AddrFrom4([4]byte{203, 0, 113, byte(random.IntN(256))})
			case i%10 == 1:
				address = netip.MustParseAddr(fmt.Sprintf("2001:db8:%x:%x::", random.IntN(4), random.IntN(1<<16)))
			}
			bits := 32
			if address.Is6() {
				bits = 64
			}
			counts.Add(netip.PrefixFrom(address, bits), i%20 == 0)
			total++
			for bits := 8; bits <= 64; bits += 4 {
				if network, err := address.Prefix(bits); err == nil {
					truth[network]++
				}
			}
		}
		all = append(all, counts)
		for _, many := range []int{0, 30} { // the size of other zones
			report := &Report{Name: "x", Zones: []Zone{{Name: "z", Networks: NewNetworks(counts)}}}
			for i := range many {
				report.Zones = append(report.Zones, Zone{Name: fmt.Sprint(i), Definition: fmt.Sprintf("%0500d", i)})
			}
			text := Encode(report)
			got, err := Decode(text)
			if err != nil || len(text) > store.MaxReport || got.Zones[0].Networks == nil {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			if many == 0 {
				read = append(read, got.Zones[0].Networks)
			}
		}
	}
	sum := MergeNetworks(share, read)
	found := make(map[netip.Prefix]topk.NetworkCount)
	for _, c := range sum.Top {
		found[c.Network] = c
		if n := truth[c.Network]; n < c.Requests.AtLeast || n > c.Requests.AtLeast+c.Requests.Error {
			t.Errorf("%v: %d requests are told as %+v", c.Network, n, c.Requests)
		}
		if c.KeysMost != 0 && c.Keys > c.KeysMost {
			t.Errorf("%v: %d keys at one instance, and %d at all", c.Network, c.Keys, c.KeysMost)
		}
	}
	if sum.Requests != total {
		t.Errorf("%d requests, want %d", sum.Requests, total)
	}
	attack, ok := found[netip.MustParsePrefix("203.0.113.0/24")]
	if !ok || attack.Requests.AtLeast != 6000 || attack.Refused.AtLeast != 3000 || attack.Requests.Error > total/500 {
		t.Errorf("the attack: %+v", attack)
	}
	if _, ok := found[netip.MustParsePrefix("2001:db8::/32")]; !ok && found[netip.MustParsePrefix("2001:db8:1::/48")].Own == 0 {
		t.Errorf("no IPv6: %+v", sum.Top)
	}
	for network, n := range truth {
		if _, listed := found[network]; !listed && network.Addr().Is4() && network.Bits() == 24 && n > sum.Unlisted && float64(n) >= share*float64(total) {
			t.Errorf("%v has %d requests and is missing", network, n)
		}
	}
	// One instance does as well as the sum of all that it has counted.
	one := MergeNetworks(share, read[:1])
	top, n, _ := all[0].Top(share)
	if one.Requests != n || len(one.Top) < len(top) {
		t.Errorf("%d networks of %d requests, want %d of %d", len(one.Top), one.Requests, len(top), n)
	}
}

// TestForgedNetworks: networks that cannot be true do not count, and others do.
func TestForgedNetworks(t *testing.T) {
	for text, want := range map[string]string{
		`{"p":"192.0.2.0/24","r":{"n":5},"k":1}`:  "192.0.2.0/24 5",
		`{"p":"192.0.2.0/25","r":{"n":5},"k":1}`:  "",
		`{"p":"192.0.2.1/24","r":{"n":5},"k":1}`:  "",
		`{"p":"2001:db8::/32","r":{"n":5},"k":1}`: "",
		`{"r":{"n":5},"k":1}`:                     "",
	} {
		r, err := Decode(`{"form":3,"name":"x","zones":[{"z":"z","p":{"n":9,"l":[[{"b":24,"c":[` + text + `]}],[{"b":200}]]}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		merged, got := mergeLevel(24, r.Zones[0].Networks.Levels[0]), ""
		for _, c := range merged.Counts {
			got = fmt.Sprint(c.Network, " ", c.Requests.AtLeast)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if r, err := Decode(`{"form":3,"name":"x","zones":[{"z":"z","p":{"l":[[{"b":24,"c":[{"p":"x"}]}],[]]}}]}`); err == nil {
		t.Errorf("%+v", r)
	}
}

// TestMergeUnlisted: an instance that does not list a network may have counted as many requests of it as its list says.
func TestMergeUnlisted(t *testing.T) {
	of := topk.NetworkCount{Network: netip.MustParsePrefix("192.0.2.0/24"), Requests: topk.Count{AtLeast: 9}}
	listed := topk.NetworkLevel{Bits: 24, Unlisted: 5, Counts: []topk.NetworkCount{of}}
	sum := mergeLevel(24, []topk.NetworkLevel{listed, {Bits: 24, Unlisted: 7}, listed}).Counts
	if len(sum) != 1 || sum[0].Requests != (topk.Count{AtLeast: 18, Error: 7}) {
		t.Errorf("%+v", sum)
	}
}
