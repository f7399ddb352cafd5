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

func address4(n uint32) netip.Prefix {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.PrefixFrom(netip.AddrFrom4(b), 32)
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
				n.Add(netip.PrefixFrom(address, bits), Refused)
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
			if l.Refused != l.Requests.AtLeast {
				t.Errorf("%s: %+v, and all were refused", name, l)
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

// TestNetworksLater: only two spans count, and 200,000 addresses take no more memory than the places.
func TestNetworksLater(t *testing.T) {
	synctest.Test(t, networksLater) // so that these take no time
}

func networksLater(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := NewNetworks(time.Minute)
	for i := range uint32(200_000) {
		n.Add(address4(i*2654435761), Requests)
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
	time.Sleep(time.Second) // so that no span ends while a request is counted
	for i := range 5 {
		time.Sleep(time.Minute)
		for range 100 * (i + 1) {
			n.Add(address4(7), Refused)
		}
	}
	top, _, _ := n.Top(0.5)
	if len(top) != 1 || top[0].Requests != (Count{900, 0}) || top[0].Refused != 900 {
		t.Errorf("%+v", top)
	}
	runtime.KeepAlive(n)
	time.Sleep(3 * time.Minute) // until no timer runs
}

// TestNetworksAllocateNothing: a request that is counted allocates nothing, because operators look while somebody floods them.
func TestNetworksAllocateNothing(t *testing.T) {
	n := NewNetworks(time.Hour)
	for _, network := range []string{"203.0.113.107/32", "ffff:ffff:ffff:ffff::/64"} {
		key := netip.MustParsePrefix(network)
		n.Add(key, Refused)
		if allocations := testing.AllocsPerRun(1000, func() { n.Add(key, Refused) }); allocations != 0 {
			t.Errorf("%s: %v allocations", network, allocations)
		}
	}
}
