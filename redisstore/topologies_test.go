package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// named gives a check a lease of its own.
func named(c store.Check) store.Check {
	c.LeaseID = storetest.LeaseID(c.Rule)
	return c
}

// TestCluster is what a Cluster does that is well.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], DenyCache: -1})
	works(t, s)
	for _, key := range []string{"", "a", "rl:{203.0.113.7}:zone:token_bucket.1", "{}", "a{}b", "a{b", "{{a}}", "}{a}{b}"} {
		if got, want := topology.SlotOf(key), c.SlotOf(key); int(got) != want {
			t.Errorf("%q: slot %d, the server says %d", key, got, want)
		}
	}
	// Until the slot has moved, the node that is to have it knows the key, and sends a call that comes to it first back.
	t.Run("ListsTakeFewCalls", func(t *testing.T) {
		listsTakeFewCalls(t, s, func() { startMove(c, "{key%206}").MoveKeys() })
	})
}

// startMove begins to move the slot of a key to another node.
func startMove(c *redistest.Cluster, key string) *redistest.Migration {
	from, to := c.MasterOf(key), c.Nodes()[0]
	if from == to {
		to = c.Nodes()[1]
	}
	return c.StartMove(c.SlotOf(key), from, to)
}

// TestSentinel reaches a master through Sentinels, with TLS and the documented users. Without a master, the error says
// what all of them answer.
func TestSentinel(t *testing.T) {
	t.Parallel()
	g := redistest.StartSentinel(t,
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("master"), redistest.WithUser("limiter", "s3cret", leastACL(t)...)},
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("sentinel"), redistest.WithUser("finder", "s3cret2", sentinelACL(t)...)})
	files := g.Servers()[0].TLS()
	options := redisstore.Options{
		Mode: redisstore.ModeSentinel, MasterName: redistest.MasterName, Addresses: g.TLSAddrs(),
		Username: "limiter", Password: "s3cret", SentinelUsername: "finder", SentinelPassword: "s3cret2",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	}
	works(t, open(t, options))
	options.MasterName, options.Timeout = "nobody", 500*time.Millisecond
	s := open(t, options)
	patient.Until(t, "an error that says what all Sentinels answer", func() bool {
		err := attempt(s, hourly(t))
		return err != nil && containsAll(err.Error(), `no sentinel answers where the master "nobody" is`, `watches no master "nobody"`)
	})
}
