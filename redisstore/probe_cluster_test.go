//go:build deep

package redisstore_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

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
