package stats_test

import (
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

func address(key string) netip.Prefix {
	network, _ := netip.ParsePrefix(key)
	return network
}

// TestNetworksOnDemand: networks are counted from the first look on, and until nobody has looked for long.
func TestNetworksOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c stats.Counters
		look := func() uint64 { return c.Networks.Look(address).Spread().Requests }
		add := func() { c.Add("203.0.113.7/32", "", outcome.Allowed, stats.Untimed) }
		add()
		if n := look(); n != 0 {
			t.Errorf("it counts %d requests before somebody looks", n)
		}
		for range 3 {
			add()
		}
		if n := look(); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		for range 3 { // looks go on
			time.Sleep(3 * stats.TopSpan)
			look()
		}
		if add(); look() != 1 {
			t.Error("it does not count although somebody looks")
		}
		time.Sleep(6 * stats.TopSpan)
		if add(); look() != 0 {
			t.Error("it counts although nobody has looked for half an hour")
		}
	})
}

// TestNetworks: the requests of a network count together, whatever part of it a key is, and a key without an address does not count.
func TestNetworks(t *testing.T) {
	var c stats.Counters
	c.Networks.Look(address)
	for i := range 200 {
		n := strconv.Itoa(i)
		for _, key := range []string{"203.0.113." + n + "/32", "203.0." + n + ".0/16", "2001:db8:0:" + n + "::/64", "no address"} {
			c.Add(key, "", outcome.Limited, stats.Untimed)
		}
	}
	c.Add("203.0.113.7/32", "", outcome.Allowed, stats.Untimed)
	counts := make(map[string][2]uint64)
	top, _ := c.Networks.Look(address).Top(100, topk.Requests)
	for _, e := range top {
		counts[e.Key] = e.Counts
	}
	if len(counts) != 3 || counts["203.0.113.0/24"] != [2]uint64{201, 200} || counts["203.0.0.0/16"][0] != 200 ||
		counts["2001:db8::/48"][1] != 200 {
		t.Errorf("%+v", counts)
	}
}

// TestNetworksAllocateNothing: a request that is counted allocates nothing, because operators look while somebody floods them.
func TestNetworksAllocateNothing(t *testing.T) {
	var c stats.Counters
	c.Networks.Look(address)
	for _, key := range []string{"203.0.113.107/32", "ffff:ffff:ffff:ffff::/64"} {
		add := func() { c.Add(key, "", outcome.Limited, stats.Untimed) }
		add()
		if allocations := testing.AllocsPerRun(1000, add); allocations != 0 {
			t.Errorf("%s: %v allocations", key, allocations)
		}
	}
}
