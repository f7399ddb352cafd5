//go:build deep

package redisstore_test

import (
	"slices"
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
	expect := func(which, evicts string, missing ...string) {
		t.Helper()
		switch found, err := s.Probe(t.Context()); {
		case err != nil:
			t.Errorf("%s: %v", which, err)
		case found.Rights == nil || !slices.Equal(found.Rights.Missing, missing) || found.Evicts != evicts:
			t.Errorf("%s: rights %v, evicts %q", which, found.Rights, found.Evicts)
		}
	}
	set := func(node *redistest.Server, policy string, rules ...any) {
		t.Helper()
		node.Configure("maxmemory-policy", policy)
		if err := node.Admin().Do(t.Context(), append([]any{"acl", "setuser", "limiter"}, rules...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	expect("all is well", "")
	for _, node := range c.Nodes() {
		set(node, "allkeys-lru", "-lrem", "-zscore") // the charge of the probe needs neither
		expect(node.Addr(), "allkeys-lru", "lrem", "zscore")
		set(node, "noeviction", "+lrem", "+zscore")
	}
	expect("all is well again", "")
}
