package fleet

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

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
			report := &Report{Name: "x", Networks: true, Zones: []Zone{{Name: "z", Networks: NewNetworks(counts)}}}
			for i := range many {
				report.Zones = append(report.Zones, Zone{Name: fmt.Sprint(i), Digest: fmt.Sprintf("%0500d", i)})
			}
			text := Encode(report, store.MaxReport)
			got, err := Decode(text, store.MaxReport)
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

// TestGroupsOfAFleet: the values that clients have chosen are spread over three instances: short and long ones, control characters,
// bytes that are not UTF-8, and random values. Each reports what has room. The sums have all values above the share, and true counts
// are within the bounds.
func TestGroupsOfAFleet(t *testing.T) {
	const share = 0.02
	random := rand.New(rand.NewPCG(1, 2))
	long := strings.Repeat("\x01", topk.MaxKey)
	cut := strings.Repeat("x", topk.MaxKey-1) + "\u00e4" // the bound is in the middle of a letter
	hidden := []string{"bot/1.0", "", "\xff\xfe", "\ufffd\ufffd", "<script>\u202e", long, long + "1", long + "2", cut, cut + strings.Repeat("y", 1<<12)}
	truth, total := make(map[string]uint64), uint64(0)
	var of [2][]*Groups
	for range 3 {
		counts := topk.NewGroups(time.Minute)
		for i := range 20_000 {
			value := fmt.Sprintf("%s%d", long[:random.IntN(len(long))], random.Uint64())
			if i%2 == 0 {
				value = hidden[random.IntN(len(hidden))]
			}
			truth[value]++
			total++
			counts.Add(value, fmt.Sprint(random.IntN(100)), i%20 == 0)
		}
		for i, many := range []int{0, 15} { // other zones, as hostile
			report := &Report{Name: "x", Groups: true}
			for z := range many + 1 {
				report.Zones = append(report.Zones, Zone{Name: fmt.Sprint("z", z), Groups: NewGroups("{header.User-Agent}", counts), Totals: map[string]uint64{"allowed": uint64(9 * (20 - z))}})
			}
			text := Encode(report, store.MaxReport)
			got, err := Decode(text, store.MaxReport)
			if err != nil || len(text) > store.MaxReport || len(got.Zones) != many+1 || got.Zones[0].Groups == nil {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			told := 0
			for _, z := range got.Zones {
				if z.Groups != nil {
					told++
				}
			}
			if told+got.Omitted.Groups != many+1 || many > 0 && !strings.HasPrefix(got.Omitted.String(), "the groups of ") {
				t.Errorf("%d zones, of which %d have groups, %q is omitted", many+1, told, got.Omitted)
			}
			of[i] = append(of[i], got.Zones[0].Groups)
		}
	}
	for _, all := range of {
		sum := MergeGroups(share, all)
		if sum.Requests != total {
			t.Errorf("%d requests, want %d", sum.Requests, total)
		}
		found := make(map[string]bool)
		for _, c := range sum.Top {
			for value, n := range truth {
				if len(value) != c.Length || !strings.HasPrefix(value, c.Value) || c.Hash != 0 && c.Hash != xxhash.Sum64String(value) {
					continue
				}
				found[value] = true
				if n < c.Requests.AtLeast || n > c.Requests.AtLeast+c.Requests.Error {
					t.Errorf("%.20q: %d requests are told as %+v", value, n, c.Requests)
				}
			}
			if c.Keys == 0 || c.Keys > 200 || c.KeysMost < c.Keys {
				t.Errorf("%.20q: %d to %d keys", c.Value, c.Keys, c.KeysMost)
			}
		}
		for _, value := range hidden {
			if !found[value] && truth[value] > sum.Unlisted {
				t.Errorf("%.20q has %d requests and is missing; at most %d are possible", value, truth[value], sum.Unlisted)
			}
		}
		if len(found) != len(sum.Top) {
			t.Errorf("%d values are listed, %d of them are known", len(sum.Top), len(found))
		}
	}
	if sum := MergeGroups(share, of[0]); len(sum.Top) != len(hidden) || sum.Unlisted > total/50 {
		t.Errorf("%d values with at most %d requests for another one, want %d", len(sum.Top), sum.Unlisted, len(hidden))
	}
	other := *of[0][2]
	other.By = "{method}"
	if sum := MergeGroups(share, append(of[0][:2:2], &other)); sum.Requests != total/3*2 {
		t.Errorf("%d requests with those of another placeholder, want %d", sum.Requests, total/3*2)
	}
}

// TestForgedSets: what cannot be true in the networks or groups of a report is not read.
func TestForgedSets(t *testing.T) {
	long := strings.Repeat("x", topk.MaxKey)
	for text, good := range map[string]bool{
		`"p":{"n":5,"l":[[{"b":24,"u":[0,0,0,0],"k":[{"key":"192.0.2.0/24","c":[5]}]}],[]]}`:                true,
		`"p":{"n":5,"l":[[{"b":24,"k":[{"key":"192.0.2.0/25","c":[5]}]}],[]]}`:                              false,
		`"p":{"n":5,"l":[[{"b":24,"k":[{"key":"192.0.2.1/24","c":[5]}]}],[]]}`:                              false,
		`"p":{"n":5,"l":[[{"b":32,"k":[{"key":"2001:db8::/32","c":[5]}]}],[]]}`:                             false,
		`"p":{"n":5,"l":[[{"b":24,"k":[{"key":"x","c":[5]}]}],[]]}`:                                         false,
		`"p":{"n":5,"l":[[{"b":99,"k":[]}],[]]}`:                                                            false,
		`"p":{"n":5,"l":[[{"b":24,"k":[{"key":"192.0.2.0/24","c":[5],"n":9007199254740993}]}],[]]}`:         false,
		`"p":{"n":5,"l":[[{"b":24,"u":[9007199254740993],"k":[{"key":"192.0.2.0/24","c":[5]}]}],[]],"s":1}`: false,

		`"p":{"n":9007199254740993}`: false,

		`"g":{"n":5,"o":"{method}","l":{"u":[0,0,0,0],"k":[{"key":"GET","c":[5]},{"key":"","c":[5]}]}}`:           true,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `0123456789abcdef","key_truncated":300,"c":[5]}]}}`:              true,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `0123456789ABCDEF","key_truncated":300,"c":[5]}]}}`:              false,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `0123456789abcdef","key_truncated":256,"c":[5]}]}}`:              false,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `0123456789abcdef","key_truncated":9007199254740993,"c":[5]}]}}`: false,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `not a hash at all","key_truncated":300,"c":[5]}]}}`:             false,
		`"g":{"n":5,"l":{"k":[{"key":"short","key_truncated":300,"c":[5]}]}}`:                                     false,
		`"g":{"n":5,"l":{"k":[{"key":"` + long + `x","c":[5]}]}}`:                                                 false,
		`"g":{"n":5,"l":{"k":[{"key":"\ufffd","key_base64":"/w==","c":[5]}]}}`:                                    true,
		`"g":{"n":5,"l":{"k":[{"key":"harmless","key_base64":"/w==","c":[5]}]}}`:                                  false,
		`"g":{"n":5,"l":{"k":[{"key":"x","key_base64":"eA==","c":[5]}]}}`:                                         false,
		`"g":{"n":5,"l":{"k":[{"key":"x","c":[9007199254740993]}]}}`:                                              false,
		`"g":{"n":5,"l":{"k":[{"key":"x","c":[5],"n":9007199254740993}]}}`:                                        false,
		`"g":{"n":9007199254740993,"l":{"k":[]}}`:                                                                 false,
		`"g":{"n":5,"s":-1,"l":{"k":[]}}`:                                                                         false,
		`"g":{"n":5,"o":"` + strings.Repeat("x", mostText+1) + `","l":{"k":[]}}`:                                  false,
	} {
		if _, err := Decode(`{"form":1,"name":"x","zones":[{"z":"z",`+text+`}]}`, store.MaxReport); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
