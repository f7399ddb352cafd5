package topk

import (
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func address(key string) netip.Prefix {
	network, _ := netip.ParsePrefix(key)
	return network
}

// TestNetworksOnDemand: networks are counted from the first look on, and until nobody has looked for long.
func TestNetworksOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n Networks
		look := func() uint64 { return n.Look(span, address).Spread().Requests }
		add := func() { n.Add("203.0.113.7/32", Requests) }
		add()
		if got := look(); got != 0 {
			t.Errorf("it counts %d requests before somebody looks", got)
		}
		for range 3 {
			add()
		}
		if got := look(); got != 3 {
			t.Errorf("%d requests, want 3", got)
		}
		for range 3 { // looks go on
			time.Sleep(3 * span)
			look()
		}
		if add(); look() != 1 {
			t.Error("it does not count although somebody looks")
		}
		time.Sleep(6 * span)
		if add(); look() != 0 {
			t.Error("it counts although nobody has looked for half an hour")
		}
	})
}

// TestNetworks: the requests of a network count together, whatever part of it a key is, and a key without an address does not count.
func TestNetworks(t *testing.T) {
	var n Networks
	n.Look(span, address)
	for i := range 200 {
		part := strconv.Itoa(i)
		for _, key := range []string{"203.0.113." + part + "/32", "203.0." + part + ".0/16", "2001:db8:0:" + part + "::/64", "no address"} {
			n.Add(key, Refused)
		}
	}
	n.Add("203.0.113.7/32", Requests)
	counts := make(map[string][2]uint64)
	top, _ := n.Look(span, address).Top(100, Requests)
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
	var n Networks
	n.Look(span, address)
	for _, key := range []string{"203.0.113.107/32", "ffff:ffff:ffff:ffff::/64"} {
		add := func() { n.Add(key, Refused) }
		add()
		if allocations := testing.AllocsPerRun(1000, add); allocations != 0 {
			t.Errorf("%s: %v allocations", key, allocations)
		}
	}
}
