//go:build deep

package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestNeighboursByAnyName: however the nodes of a Cluster name each other, each request is decided and the limit is
// exact. This holds in each state of a slot that moves too.
func TestNeighboursByAnyName(t *testing.T) {
	t.Parallel()
	hosts := redistest.WithHosts("127.0.0.2", "127.0.0.3", "127.0.0.4")
	names := func(kind string) redistest.Option {
		return redistest.WithArgs("--cluster-preferred-endpoint-type", kind)
	}
	for name, options := range map[string][]redistest.Option{
		"IPv6":                     {redistest.WithHosts("::1")},
		"no host name":             {hosts, names("hostname")},
		"no host":                  {hosts, names("unknown-endpoint")},
		"no host but one":          {names("unknown-endpoint")},
		"a host name that is one":  {names("hostname"), redistest.WithArgs("--cluster-announce-hostname", "localhost")},
		"a host name that is none": {hosts, names("hostname"), redistest.WithArgs("--cluster-announce-hostname", "redis.invalid")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decidesEach(t, redistest.StartCluster(t, 3, 0, options...))
		})
	}
}

// decidesEach expects that each request is decided as it should while a slot moves.
func decidesEach(t *testing.T, c *redistest.Cluster) {
	const limit = 3
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], DenyCache: -1})
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: limit, Window: 1000 * time.Hour})
	moving := sameSlot(int(topology.SlotOf("{moving}")), 100)
	used := 0
	move(t, c, s.Key(rule, moving[0]), func(t *testing.T) {
		keys := slices.Clone(moving[used : used+10])
		used += 10
		for i := range 60 {
			keys = append(keys, t.Name()+strconv.Itoa(i))
		}
		for _, key := range keys {
			passed := 0
			for range 2 * limit {
				d, err := decideOne(s, store.Check{Rule: rule, Key: key, Cost: 1})
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				if d.Allowed {
					passed++
				}
			}
			if passed != limit {
				t.Errorf("%s: %d passed of %d", key, passed, limit)
			}
		}
		for _, key := range moving[:used] { // some have moved
			if d, err := decideOne(s, store.Check{Rule: rule, Key: key, Cost: 1}); err != nil || d.Allowed {
				t.Errorf("%s passes beyond the limit, or %v", key, err)
			}
		}
	})
}

// sameSlot returns hash tags of one slot.
func sameSlot(slot, n int) (tags []string) {
	for i := rand.IntN(1 << 30); len(tags) < n; i++ {
		if tag := strconv.Itoa(i); int(topology.SlotOf("{"+tag+"}")) == slot {
			tags = append(tags, tag)
		}
	}
	return tags
}

// move takes a slot through all states of its migration to another node and back, and runs a test in each state.
func move(t *testing.T, c *redistest.Cluster, key string, test func(t *testing.T)) {
	from, to := c.MasterOf(key), c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	t.Run("before", test)
	for _, way := range []string{"migrating", "migrating back"} {
		m := c.StartMove(c.SlotOf(key), from, to)
		t.Run(way+", all keys here", test)
		m.MoveKeys()
		t.Run(way+", all keys there", test)
		t.Run(way+", keys at both", test)
		m.Finish()
		t.Run(way+", arrived", test)
		from, to = to, from
	}
}
