package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestClusterConforms runs the contract on a Cluster.
func TestClusterConforms(t *testing.T) {
	deep.InTurn(t)
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	conforms(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:2]}, c.Nodes())
}

func TestCluster(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 1)
	options := redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:2]}
	t.Run("Works", func(t *testing.T) { works(t, open(t, options)) })

	t.Run("SlotsAreTheServers", func(t *testing.T) {
		for _, key := range []string{"", "a", "rl:{203.0.113.7}:zone:token_bucket.1", "{}", "a{}b", "a{b", "{{a}}", "}{a}{b}"} {
			if got, want := topology.SlotOf(key), c.SlotOf(key); int(got) != want {
				t.Errorf("%q: slot %d, the server says %d", key, got, want)
			}
		}
	})

	t.Run("AllOrNothing", func(t *testing.T) {
		s := open(t, options)
		rules := []*store.Rule{
			storetest.Rule(t, "each", "token_bucket", algorithms.Limit{Events: 3, Window: time.Hour}),
			storetest.Rule(t, "all", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour}),
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for i := range 200 { // 10 requests of each of 20 clients, 3 of which may pass
			wg.Go(func() {
				decisions := make([]algorithms.Decision, 2)
				checks := []store.Check{{Rule: rules[0], Key: strconv.Itoa(i % 20), Cost: 1}, {Rule: rules[1], Cost: 1}}
				if err := s.Take(context.Background(), checks, decisions); err != nil {
					t.Error(err)
				} else if decisions[0].Allowed && decisions[1].Allowed {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		s.Flush()
		// A charge that is given back a moment later may refuse others meanwhile, and never
		// admits one.
		left := take(t, s, rules[1], "", 0).Remaining
		if n := admitted.Load(); n > 60 || left != 100-n {
			t.Errorf("%d admitted of 60, and %d of 100 left", n, left)
		} else {
			t.Logf("%d admitted of 60", n)
		}
	})

	t.Run("Resharding", func(t *testing.T) {
		const limit = 2000
		s, rules := open(t, options), twoZones(t, limit)
		var fresh atomic.Int64
		tag := "moving"
		slot := int(topology.SlotOf("{" + tag + "}"))
		others := sameSlot(slot, 200)
		hot := startLoad(t, s, rules, func() string { return tag })
		lending := []*store.Rule{lendingRule(t, "lent", "fixed_window", algorithms.Limit{Events: limit, Window: 1000 * time.Hour}, 50*time.Millisecond)}
		lent := []*load{startLoad(t, s, lending, func() string { return tag }), startLoad(t, open(t, options), lending, func() string { return tag })}
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
		patient.Until(t, "what is lent to be used up", func() bool { return lent[0].refused.Load()+lent[1].refused.Load() > 0 })
		hot.end()
		new.end()
		lent[0].end()
		lent[1].end()
		if n := lent[0].failed.Load() + lent[1].failed.Load(); n > 0 {
			t.Errorf("%d failed in the zone that lends: %v %v", n, lent[0].err(), lent[1].err())
		}
		if n := lent[0].admitted.Load() + lent[1].admitted.Load(); n > limit || n < limit/2 {
			t.Errorf("%d admitted in the zone that lends, want %d to %d", n, limit/2, limit)
		}
		if n := hot.failed.Load() + new.failed.Load(); n > 0 {
			t.Errorf("%d failed: %v %v", n, hot.err(), new.err())
		}
		if n := hot.admitted.Load(); n != limit {
			t.Errorf("%d admitted, the limit is %d", n, limit)
		}
	})

	t.Run("LostReplies", func(t *testing.T) {
		const limit = 1e6
		s := open(t, options)
		rules := []*store.Rule{storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: limit, Window: 1000 * time.Hour})}
		l := startLoad(t, s, rules, func() string { return "lost" })
		for range 50 {
			n := l.admitted.Load()
			patient.Until(t, "requests to be admitted", func() bool { return l.admitted.Load() > n+5 })
			for _, node := range c.Nodes() {
				if err := node.Admin().ClientKillByFilter(context.Background(), "type", "normal", "skipme", "yes").Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.end()
		charged := limit - take(t, s, rules[0], "lost", 0).Remaining
		if admitted, failed := l.admitted.Load(), l.failed.Load(); charged < admitted || charged > admitted+failed || l.refused.Load() > 0 {
			t.Errorf("%d charged, %d admitted, %d failed, %d refused", charged, admitted, failed, l.refused.Load())
		} else {
			t.Logf("%d charged, %d admitted, %d failed", charged, admitted, failed)
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

// TestClusterDown: requests for slots without a node fail, and are decided when the slots have a
// node.
func TestClusterDown(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0)
	s, rule := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), Timeout: 200 * time.Millisecond}), hourly(t)
	patient.Until(t, "the Cluster to answer", func() bool { return attempt(s, rule) == nil })
	ctx := context.Background()
	for _, node := range c.Nodes() {
		node.Configure("cluster-require-full-coverage", "yes")
	}
	dead := c.Nodes()[0]
	if dead == c.MasterOf(s.Key(rule, "client")) {
		dead = c.Nodes()[1]
	}
	dead.Kill()
	patient.Until(t, "the Cluster to be down", func() bool { return attempt(s, rule) != nil })
	t.Logf("down: %v", attempt(s, rule))
	// The other nodes answer, and the breaker of the one that does not opens.
	patient.Until(t, "the breaker of the dead node to open", func() bool {
		for i := range 20 {
			_ = s.Take(ctx, []store.Check{{Rule: rule, Key: fmt.Sprint(i), Cost: 1}}, make([]algorithms.Decision, 1))
		}
		return s.Stats().Breaker != store.BreakerClosed
	})
	dead.Restart()
	c.Await()
	awaitService(t, s, rule, "client")
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
