//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestClusterInTrouble moves a slot that is in use, and kills a node.
func TestClusterInTrouble(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 1)
	options := redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:2]}
	t.Run("Resharding", func(t *testing.T) {
		const limit = 2000
		s, rules := open(t, options), twoZones(t, limit)
		var fresh atomic.Int64
		tag := "moving"
		slot := int(topology.SlotOf("{" + tag + "}"))
		others := sameSlot(slot, 200)
		hot := startLoad(t, s, rules, func() string { return tag })
		new := startLoad(t, s, rules, func() string { return others[fresh.Add(1)%int64(len(others))] })
		patient.Until(t, "requests before the slot moves", func() bool { return hot.admitted.Load() > 100 })
		from := c.MasterOf(s.Key(rules[0], tag))
		to := c.Nodes()[0]
		if from == to {
			to = c.Nodes()[1]
		}
		for range 2 {
			move := c.StartMove(slot, from, to)
			n := hot.admitted.Load()
			patient.Until(t, "requests while the slot moves", func() bool { return hot.admitted.Load() > n+50 })
			move.MoveKeys()
			n = hot.admitted.Load()
			patient.Until(t, "requests while the slot moves", func() bool { return hot.admitted.Load() > n+50 })
			move.Finish()
			n = hot.admitted.Load()
			patient.Until(t, "requests while the slot moves", func() bool { return hot.admitted.Load() > n+50 })
			from, to = to, from
		}
		patient.Until(t, "the limit to be used up", func() bool { return hot.admitted.Load() >= limit })
		hot.end()
		new.end()
		if n := hot.failed.Load() + new.failed.Load(); n > 0 {
			t.Errorf("%d failed: %v %v", n, hot.err(), new.err())
		}
		if n := hot.admitted.Load(); n != limit {
			t.Errorf("%d admitted, the limit is %d", n, limit)
		}
	})

	t.Run("Failover", func(t *testing.T) {
		const limit = 200
		s, rules := open(t, options), twoZones(t, limit)
		dead := c.MasterOf(s.Key(rules[0], "client"))
		well := "0"
		for i := 0; c.MasterOf(s.Key(rules[0], well)) == dead; i++ {
			well = strconv.Itoa(i)
		}
		l := startLoad(t, s, rules, func() string { return "client" })
		patient.Until(t, "the limit to be used up", func() bool { return l.admitted.Load() == limit })
		steady := startLoad(t, s, twoZones(t, 1e6), func() string { return well })
		patient.Until(t, "requests of the other key", func() bool { return steady.admitted.Load() > 50 })
		dead.Kill()
		c.MasterOf(s.Key(rules[0], "client"))
		awaitService(t, s, rules[0], "client")
		l.end()
		steady.end()
		if n := l.admitted.Load(); n > 2*limit {
			t.Errorf("%d admitted, the limit is %d", n, limit)
		} else {
			t.Logf("%d admitted of %d, %d failed", n, limit, l.failed.Load())
		}
		if n := steady.failed.Load(); n > 0 {
			t.Errorf("%d failed whose node was well: %v", n, steady.err())
		}
		dead.Restart()
		c.Await()
	})
}

func TestClusterWithTLSAndUser(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0, redistest.WithTLS(true), redistest.WithArgs("--tls-cluster", "yes"),
		redistest.WithUser("limiter", "s3cret", append(leastACL(t), clusterACL(t)...)...))
	files := c.Nodes()[0].TLS()
	s := open(t, redisstore.Options{
		Mode: redisstore.ModeCluster, Addresses: c.TLSAddrs()[:1], Username: "limiter", Password: "s3cret",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	})
	works(t, s)
	rule := hourly(t)
	for i := range 50 {
		take(t, s, rule, fmt.Sprint(i), 1)
	}

	found := s.Examine(t.Context())
	if len(found.Servers) != 3 || found.Rights == nil || len(found.Rights.Missing) > 0 {
		t.Errorf("%+v", found)
	}
	for _, c := range found.Servers {
		if c.Trouble != "" || c.Described {
			t.Errorf("%+v", c)
		}
	}
	s.Announce("this one")
	s.Beat()
	if texts, err := s.Announcements(t.Context(), 10); err != nil || !slices.Equal(texts, []string{"this one"}) {
		t.Errorf("%q, %v", texts, err)
	}
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

// TestMoveToANodeThatHangs: while a slot moves to a node that hangs, the node that it comes from
// decides for all its other slots, and does not count as failing.
func TestMoveToANodeThatHangs(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	replaceNone(c)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), Timeout: 3 * time.Second, DenyCache: -1})
	rule := hourly(t)
	take(t, s, rule, "client", 0)
	from, to := c.Nodes()[0], c.Nodes()[2]
	moving := tagAt(c, s, rule, from, "moving")
	var others []string
	for i := range 60 {
		if tag := tagAt(c, s, rule, from, fmt.Sprintf("other%d-", i)); topology.SlotOf(s.Key(rule, tag)) != topology.SlotOf(s.Key(rule, moving)) {
			others = append(others, tag)
		}
	}
	c.StartMove(int(topology.SlotOf(s.Key(rule, moving))), from, to)
	to.Freeze()
	defer to.Thaw()
	var next atomic.Int64
	steady := startLoad(t, s, []*store.Rule{rule}, func() string { return others[next.Add(1)%int64(len(others))] })
	asking := startLoad(t, s, []*store.Rule{rule}, func() string { return moving })
	patient.Until(t, "requests to fail", func() bool { return asking.failed.Load() >= 40 })
	n := steady.admitted.Load() + steady.refused.Load()
	patient.Until(t, "requests of the other slot to be decided", func() bool { return steady.admitted.Load()+steady.refused.Load() > n+100 })
	asking.end()
	steady.end()
	if n := steady.failed.Load(); n > 0 {
		t.Errorf("%d of %d failed whose node is well: %v", n, n+steady.admitted.Load()+steady.refused.Load(), steady.err())
	} else {
		t.Logf("%d decided, %d failed that asked for the slot that migrates", steady.admitted.Load()+steady.refused.Load(), asking.failed.Load())
	}
	if address, breaker := s.NodeOf(s.Key(rule, others[0])); address != from.Addr() || breaker != store.BreakerClosed {
		t.Errorf("%s, its breaker is %s", address, breaker)
	}
}

// tagAt returns a key whose states are on one node.
func tagAt(c *redistest.Cluster, s *redisstore.Store, rule *store.Rule, node *redistest.Server, prefix string) string {
	for i := 0; ; i++ {
		tag := prefix + strconv.Itoa(i)
		s.NodeOf(s.Key(rule, tag))
		if address, _ := s.NodeOf(s.Key(rule, tag)); address == node.Addr() {
			return tag
		}
	}
}

// replaceNone keeps the nodes of a Cluster from replacing one that hangs.
func replaceNone(c *redistest.Cluster) {
	for _, node := range c.Nodes() {
		node.Configure("cluster-node-timeout", "600000")
	}
}

// attemptOf sends a peek about a key.
func attemptOf(s store.Store, rule *store.Rule, key string) error {
	return s.Take(context.Background(), []store.Check{{Rule: rule, Key: key}}, make([]algorithms.Decision, 1))
}
