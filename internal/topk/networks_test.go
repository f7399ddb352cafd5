package topk

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// networkTruth counts exactly, by network.
type networkTruth struct {
	requests, refused map[netip.Prefix]uint64
	keys              map[netip.Prefix]map[netip.Prefix]bool
	total             uint64
}

func (e *networkTruth) add(key netip.Prefix, refused bool) {
	e.total++
	levels := levels4
	if key.Addr().Is6() {
		levels = levels6
	}
	for _, bits := range levels {
		if bits > key.Bits() {
			continue
		}
		p, _ := key.Addr().Prefix(bits)
		if e.requests[p]++; refused {
			e.refused[p]++
		}
		if e.keys[p] == nil {
			e.keys[p] = make(map[netip.Prefix]bool)
		}
		e.keys[p][key] = true
	}
}

func address4(n uint32) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.PrefixFrom(netip.AddrFrom4(b), 32)
}

func address6(high uint64) netip.Prefix {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], high)
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}

// TestNetworksOfAttacks: three attacks hide in legitimate traffic, and no address of them comes often: one /24, addresses all
// over a /16, and an IPv6 /48. Each network above the threshold is found, no other than those, and all counts are within their
// bounds.
func TestNetworksOfAttacks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	n, exact := NewNetworks(time.Hour), &networkTruth{make(map[netip.Prefix]uint64), make(map[netip.Prefix]uint64), make(map[netip.Prefix]map[netip.Prefix]bool), 0}
	for i := range 30_000 {
		var key netip.Prefix
		refused := true
		switch dice := random.IntN(100); {
		case dice < 10 && i > 15_000: // when all places are taken
			key = address4(192<<24 | 2<<8 | random.Uint32N(256))
		case dice < 14:
			key = address4(203<<24 | 113<<8 | random.Uint32N(256))
		case dice < 18:
			key = address4(198<<24 | 51<<16 | random.Uint32N(1<<16))
		case dice < 22:
			key = address6(0x2001_0db8_0007_0000 | random.Uint64N(1<<16))
		case dice < 90:
			key, refused = address4(random.Uint32()), false
		default:
			key, refused = address6(0x2a00_0000_0000_0000|random.Uint64N(1<<56)), false
		}
		exact.add(key, refused)
		n.Add(key, refused)
	}
	const share = 0.02
	top, total, _ := n.Top(share)
	if total != exact.total {
		t.Errorf("%d requests, want %d", total, exact.total)
	}
	found := make(map[string]NetworkCount)
	for _, c := range top {
		found[c.Network.String()] = c
		requests, refused, keys := exact.requests[c.Network], exact.refused[c.Network], uint64(len(exact.keys[c.Network]))
		if requests < c.Requests.AtLeast || requests > c.Requests.AtLeast+c.Requests.Error || refused < c.Refused.AtLeast || refused > c.Refused.AtLeast+c.Refused.Error {
			t.Errorf("%v: %d requests, %d refused, estimated %+v", c.Network, requests, refused, c)
		}
		if c.Requests.Error == 0 && (float64(c.Keys) < float64(keys)*(1-4*KeysError) || float64(c.Keys) > float64(keys)*(1+4*KeysError)) {
			t.Errorf("%v: %d keys, estimated %d", c.Network, keys, c.Keys)
		}
	}
	for _, want := range []string{"203.0.113.0/24", "198.51.0.0/16", "2001:db8:7::/48", "192.0.2.0/24"} {
		c, ok := found[want]
		if exact.requests[netip.MustParsePrefix(want)] < uint64(share*float64(total)) {
			t.Fatalf("%s is no attack", want)
		}
		if !ok || c.Refused.AtLeast < c.Requests.AtLeast*9/10 {
			t.Errorf("%s: %+v (%v)", want, c, top)
		}
	}
	// Recall: what is not listed has, without what is listed within it, at most the threshold.
	for p, requests := range exact.requests {
		if _, ok := found[p.String()]; ok {
			continue
		}
		own := requests
		for _, c := range top {
			if p.Contains(c.Network.Addr()) && c.Network.Bits() > p.Bits() && !coveredWithin(top, c.Network, p) {
				own -= min(own, exact.requests[c.Network])
			}
		}
		if float64(own) > share*float64(total) {
			t.Errorf("%v has %d own requests of %d, and is not listed", p, own, total)
		}
	}
}

// coveredWithin reports whether another listed network is around this one and within the outer one.
func coveredWithin(top []NetworkCount, network, outer netip.Prefix) bool {
	for _, c := range top {
		p := c.Network
		if p != network && p.Contains(network.Addr()) && p.Bits() < network.Bits() && p.Bits() > outer.Bits() && outer.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// TestSmallestNetworks: each attack is listed as the smallest network that explains it, with all of its requests, whatever people do.
func TestSmallestNetworks(t *testing.T) {
	type requests map[string]int // from each address or network
	all := func(format string, n, each int) requests {
		from := make(requests)
		for i := range n {
			from[fmt.Sprintf(format, i)] = each
		}
		return from
	}
	both := func(all ...requests) requests {
		sum := make(requests)
		for _, one := range all {
			maps.Copy(sum, one)
		}
		return sum
	}
	people, random := make(requests), rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		people[fmt.Sprintf("%d.%d.%d.%d", 1+random.IntN(220), random.IntN(256), random.IntN(256), random.IntN(256))] = 1 + random.IntN(5)
	}
	crowd := make(requests) // of one provider, all over its /8
	for range 3000 {
		crowd[fmt.Sprintf("100.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256))] = 1 + random.IntN(5)
	}
	for name, c := range map[string]struct {
		from requests
		want string
	}{
		"nobody":                    {nil, ""},
		"one address":               {requests{"192.0.2.1": 1000}, "192.0.2.1/32 1000"},
		"people":                    {people, ""},
		"a /28, and people":         {both(people, all("192.0.2.%d", 16, 20)), "192.0.2.0/28 320"},
		"all of a /24, and people":  {both(people, all("192.0.2.%d", 256, 10)), "192.0.2.0/24 2560"},
		"some of a /24":             {both(people, requests{"192.0.2.1": 140, "192.0.2.33": 200, "192.0.2.70": 140, "192.0.2.90": 150, "192.0.2.100": 140, "192.0.2.130": 150, "192.0.2.150": 130, "192.0.2.170": 140, "192.0.2.200": 200, "192.0.2.250": 130}), "192.0.2.0/24 1520"},
		"one of a /24 is far ahead": {both(people, all("192.0.2.%d", 256, 5), requests{"192.0.2.77": 5000}), "192.0.2.77/32 5000, 192.0.2.0/24 6275"},
		"/24s of a /16":             {both(all("198.51.%d.1", 256, 20), all("198.51.%d.9", 256, 20)), "198.51.0.0/16 10240"},
		"two attackers in a /16":    {both(people, requests{"198.51.1.1": 2000, "198.51.200.1": 1000}), "198.51.1.1/32 2000, 198.51.200.1/32 1000"},
		"an attacker in a crowd":    {both(crowd, requests{"100.64.0.1": 2000}), "100.64.0.1/32 2000"},
		"a customer of IPv6":        {all("2001:db8:0:4%02x::1", 200, 10), "2001:db8:0:400::/56 2000"},
		"two customers of IPv6":     {both(people, requests{"2001:db8:7:1::1": 500, "2001:db8:9:1::1": 600}), "2001:db8:9:1::/64 600, 2001:db8:7:1::/64 500"},
	} {
		n := NewNetworks(time.Hour)
		for text, times := range c.from {
			address := netip.MustParseAddr(text)
			bits := 32
			if address.Is6() {
				bits = 64
			}
			for range times {
				n.Add(netip.PrefixFrom(address, bits), true)
			}
		}
		top, total, _ := n.Top(0.01)
		var listed []string
		for _, l := range top {
			// A provider that has much of the requests is listed too.
			if name == "an attacker in a crowd" && l.Network.Bits() <= 16 {
				continue
			}
			exact := 0
			for text, times := range c.from {
				if l.Network.Contains(netip.MustParseAddr(text)) {
					exact += times
				}
			}
			if n := uint64(exact); n < l.Requests.AtLeast || n > l.Requests.AtLeast+l.Requests.Error || l.Requests.Error > total/256 {
				t.Errorf("%s: %v has %d requests, estimated %+v", name, l.Network, n, l.Requests)
			}
			listed = append(listed, fmt.Sprintf("%v %d", l.Network, exact))
		}
		if got := strings.Join(listed, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestNetworksLater: a network tells what it had ten minutes before, counting ends when nobody looks any longer, and 200,000
// addresses take no more memory than the places.
func TestNetworksLater(t *testing.T) {
	synctest.Test(t, networksLater) // so that these take no time
}

func networksLater(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n, now := NewNetworks(time.Minute), time.Now()
	for i := range uint32(200_000) {
		n.Add(address4(i*2654435761), false)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 2<<20 {
		t.Errorf("%d bytes for 200,000 addresses", used)
	} else {
		t.Logf("%d bytes for 200,000 addresses", used)
	}
	if top, total, _ := n.Top(0.002); total != 200_000 || len(top) > 500 {
		t.Errorf("%d networks of %d requests", len(top), total)
	}
	for i := range 5 {
		for range 100 * (i + 1) {
			n.Add(address4(7), true)
		}
		now = now.Add(time.Minute)
		if goesOn := n.Rotate(now); goesOn != (i < 3) { // four minutes after somebody has looked
			t.Errorf("minute %d: goes on: %v", i+1, goesOn)
		}
	}
	n.Add(address4(7), true)
	top, _, _ := n.Top(0.5)
	if len(top) != 1 || top[0].Requests != (Count{501, 0}) || top[0].Keys != 1 || top[0].Before == nil || *top[0].Before != (Count{700, 0}) {
		t.Errorf("%+v", top)
	}
	runtime.KeepAlive(n)
}
