//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestClusterWithTLSAndUser(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0, redistest.WithTLS(true), redistest.WithArgs("--tls-cluster", "yes"),
		redistest.WithUser("limiter", "s3cret", append(leastACL(t), clusterACL(t)...)...))
	files := c.Nodes()[0].TLS()
	s := open(t, redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], Username: "limiter", Password: "s3cret",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	})
	works(t, s)
	rule := hourly(t)
	for i := range 50 {
		take(t, s, rule, fmt.Sprint(i), 1)
	}

	found := s.Examine(t.Context())
	if len(found.Servers) != 3 {
		t.Errorf("%+v", found)
	}
	for _, c := range found.Servers {
		if c.Trouble != "" || c.Described {
			t.Errorf("%+v", c)
		}
	}
	s.Report("{this one}", func() string { return "{all}" })
	s.Beat()
	if reports, err := s.Look(t.Context(), true); err != nil || len(reports) != 1 || reports[0].Text != "{this one}" {
		t.Errorf("%+v, %v", reports, err)
	}
}

// TestProbeOfACluster: what is wrong with one node only is told, whichever node that is.
func TestProbeOfACluster(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0, redistest.WithUser("limiter", "p", append(append(leastACL(t), clusterACL(t)...), "+info")...))
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), Username: "limiter", Password: "p"})
	expect := func(which, evicts string) {
		t.Helper()
		if found, err := s.Probe(t.Context()); err != nil || found.Evicts != evicts {
			t.Errorf("%s: evicts %q, %v", which, found.Evicts, err)
		}
	}
	expect("all is well", "")
	for _, node := range c.Nodes() {
		node.Configure("maxmemory-policy", "allkeys-lru")
		expect(node.Addr(), "allkeys-lru")
		node.Configure("maxmemory-policy", "noeviction")
	}
	expect("all is well again", "")
}

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

// TestReplicaIsNotDialedForEachCall: a server that stays a replica costs few connections.
func TestReplicaIsNotDialedForEachCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	must(t, server.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	var made atomic.Int64
	options := asking(server)
	options.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		made.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
	}
	s := open(t, options)
	s.Silence()
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10_000, Window: 1000 * time.Hour})
	began, calls := time.Now(), 500
	for range calls {
		if _, err := try(s, rule, "k", 1); !redis.HasErrorPrefix(err, "READONLY") {
			t.Fatal(err)
		}
	}
	// In each tenth of a second one call finds out if it still is one, which closes its connection and gives up the others.
	if made, most := made.Load(), 10+4*int64(time.Since(began)/(100*time.Millisecond)); made > most {
		t.Errorf("%d connections for %d calls in %v", made, calls, time.Since(began))
	}
}
