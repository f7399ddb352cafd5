package stats_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// TestNetworksOnDemand: networks are counted from the first look on, and until nobody has looked for long.
func TestNetworksOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c stats.Counters
		look := func() uint64 {
			_, total, _ := c.Networks.Look(func(string) netip.Prefix { return netip.MustParsePrefix("203.0.113.7/32") }).Top(0.01)
			return total
		}
		add := func() { c.Add("key", "", outcome.Allowed, stats.Untimed) }
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
