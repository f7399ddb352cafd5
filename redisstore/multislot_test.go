package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// limitsOf returns limits of each algorithm, and a queue.
func limitsOf(events int64, window time.Duration) map[string]algorithms.Limit {
	all := map[string]algorithms.Limit{"leaky_bucket queue": {Events: events, Window: window, Burst: events, Mode: algorithms.ModeQueue}}
	for _, name := range algorithms.Names() {
		all[name] = algorithms.Limit{Events: events, Window: window}
		if name == "concurrency" {
			all[name] = algorithms.Limit{Events: events, Lease: time.Hour}
		}
	}
	return all
}

func ruleOf(t testing.TB, zone, kind string, limit algorithms.Limit) *store.Rule {
	t.Helper()
	if limit.Mode == algorithms.ModeQueue {
		kind = "leaky_bucket"
	}
	return storetest.Rule(t, zone, kind, limit)
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

// TestRefusedCostsNothingInOtherSlots: many requests at once that one zone refuses leave the
// states of zones in other slots unchanged, whatever their algorithms are, and in whichever order
// they are written.
func TestRefusedCostsNothingInOtherSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1]})
	ctx := context.Background()
	run := 0
	for refusing, small := range limitsOf(1, 24*time.Hour) {
		for other, large := range limitsOf(100, 24*time.Hour) {
			for _, shared := range []bool{true, false} { // which of the two has no key
				run++
				name := fmt.Sprintf("%s refuses, %s beside it, shared %v", refusing, other, shared)
				mine := store.Check{Rule: ruleOf(t, "mine"+strconv.Itoa(run), refusing, small), Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
				others := store.Check{Rule: ruleOf(t, "other"+strconv.Itoa(run), other, large), Cost: 1}
				if shared {
					mine.Key = "client" + strconv.Itoa(run)
				} else {
					others.Key = "client" + strconv.Itoa(run)
				}
				first := []store.Check{named(mine), named(others)}
				if d := ask(t, s, first...); !d[0].Allowed || !d[1].Allowed {
					t.Fatalf("%s: the first is refused: %+v", name, d)
				}
				state := func() string {
					s.Flush()
					key := s.Key(others.Rule, others.Key)
					value, _ := c.MasterOf(key).Admin().Get(ctx, key).Result()
					return value
				}
				before, value := take(t, s, others.Rule, others.Key, 0).Remaining, state()
				var group sync.WaitGroup
				for range 10 {
					group.Go(func() {
						for i := range 4 {
							checks := []store.Check{named(mine), named(others)}
							if i%2 == 1 {
								checks[0], checks[1] = checks[1], checks[0]
							}
							d := make([]algorithms.Decision, 2)
							if err := s.Take(ctx, checks, d); err != nil {
								t.Errorf("%s: %v", name, err)
							} else if d[i%2].Allowed || !d[1-i%2].Allowed {
								t.Errorf("%s: %+v", name, d)
							}
						}
					})
				}
				group.Wait()
				_, lossy := others.Rule.Algorithm().(algorithms.Lossy)
				after := state()
				if lossy && after != value {
					t.Errorf("%s: the state is %x, it was %x", name, after, value)
				}
				if left := take(t, s, others.Rule, others.Key, 0).Remaining; left != before {
					t.Errorf("%s: %d left, %d before", name, left, before)
				}
			}
		}
	}
	t.Logf("%d pairs of zones", run)
}

// named gives a check a lease of its own.
func named(c store.Check) store.Check {
	c.LeaseID = storetest.LeaseID(c.Rule)
	return c
}

// TestFailedCostsNothingInOtherSlots: the same where the node of one slot does not answer.
func TestFailedCostsNothingInOtherSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	replaceNone(c)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], Timeout: 3 * time.Second})
	ctx := context.Background()
	run := 0
	for other, limit := range limitsOf(100, 24*time.Hour) {
		run++
		mine := store.Check{Rule: storetest.Rule(t, "mine"+strconv.Itoa(run), "token_bucket", algorithms.Limit{Events: 1000, Window: 24 * time.Hour}), Cost: 1}
		others := store.Check{Rule: ruleOf(t, "other"+strconv.Itoa(run), other, limit), Cost: 1}
		take(t, s, others.Rule, "", 0)
		hangs := c.Nodes()[0]
		if c.MasterOf(s.Key(others.Rule, "")) == hangs {
			hangs = c.Nodes()[1]
		}
		mine.Key = tagAt(c, s, mine.Rule, hangs, "client")
		request := func() error {
			return s.Take(ctx, []store.Check{named(mine), named(others)}, make([]algorithms.Decision, 2))
		}
		if err := request(); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		before := take(t, s, others.Rule, "", 0).Remaining
		hangs.Freeze()
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if request() == nil {
					t.Error("decided without a node")
				}
			})
		}
		group.Wait()
		s.Flush()
		if left := take(t, s, others.Rule, "", 0).Remaining; left != before {
			t.Errorf("%s: %d left, %d before", other, left, before)
		}
		hangs.Thaw()
		patient.Until(t, "the thawed node to answer", func() bool { return attemptOf(s, mine.Rule, mine.Key) == nil })
	}
}

// attemptOf sends a peek about a key.
func attemptOf(s store.Store, rule *store.Rule, key string) error {
	return s.Take(context.Background(), []store.Check{{Rule: rule, Key: key}}, make([]algorithms.Decision, 1))
}

// replaceNone keeps the nodes of a Cluster from replacing one that hangs.
func replaceNone(c *redistest.Cluster) {
	for _, node := range c.Nodes() {
		node.Configure("cluster-node-timeout", "600000")
	}
}

// TestRefusalsInSlotsCountOnce: a refusal counts once towards a ban, and an independent check is
// decided whatever the others are.
func TestRefusalsInSlotsCountOnce(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:1], DenyCache: -1})
	check := banning(t, 5)
	all := store.Check{Rule: storetest.Rule(t, "all", "token_bucket", algorithms.Limit{Events: 100, Window: 24 * time.Hour}), Cost: 1}
	dry := store.Check{Rule: storetest.Rule(t, "dry", "leaky_bucket", algorithms.Limit{Events: 100, Window: 24 * time.Hour, Burst: 100, Mode: algorithms.ModeQueue}), Key: "other", Cost: 1, Independent: true}
	for i := range 8 {
		d := ask(t, s, dry, all, check)
		if d[2].Allowed != (i == 0) || d[2].BanBegins != (i == 5) || d[2].Banned != (i >= 5) {
			t.Errorf("request %d: %+v", i, d[2])
		}
		if want := int64(99 - i); d[0].Remaining != want {
			t.Errorf("request %d: apart, %d left, want %d", i, d[0].Remaining, want)
		}
		if want := int64(99); d[1].Remaining != want {
			t.Errorf("request %d: %d left, want %d", i, d[1].Remaining, want)
		}
	}
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
