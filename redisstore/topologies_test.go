package redisstore_test

import (
	"fmt"
	"strconv"
	"sync"
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
	t.Run("RefusedCostsNothingInOtherSlots", func(t *testing.T) { refusedCostsNothing(t, c, s) })
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

// refusedCostsNothing: many requests at once that one zone refuses leave the states of zones in other slots unchanged,
// whatever their algorithms are, and in whichever order they are written.
func refusedCostsNothing(t *testing.T, c *redistest.Cluster, s *redisstore.Store) {
	run := 0
	for refusing, small := range limitsOf(1, 24*time.Hour) {
		for other, large := range limitsOf(100, 24*time.Hour) {
			run++
			name := fmt.Sprintf("%s refuses, %s beside it", refusing, other)
			mine := store.Check{Rule: ruleOf(t, "mine"+strconv.Itoa(run), refusing, small), Key: strconv.Itoa(run), Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
			others := store.Check{Rule: ruleOf(t, "other"+strconv.Itoa(run), other, large), Cost: 1} // which is shared, so it has no key
			if run%2 == 0 {
				mine.Key, others.Key = others.Key, mine.Key
			}
			if d := ask(t, s, named(mine), named(others)); !d[0].Allowed || !d[1].Allowed {
				t.Fatalf("%s: the first is refused: %+v", name, d)
			}
			state := func() string {
				s.Flush()
				key := s.Key(others.Rule, others.Key)
				return c.MasterOf(key).Admin().Get(t.Context(), key).Val()
			}
			before, value := take(t, s, others.Rule, others.Key, 0).Remaining, state()
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					for i := range 2 {
						checks := []store.Check{named(mine), named(others)}
						if i == 1 {
							checks[0], checks[1] = checks[1], checks[0]
						}
						d := make([]algorithms.Decision, 2)
						if err := s.Take(t.Context(), checks, d); err != nil {
							t.Errorf("%s: %v", name, err)
						} else if d[i].Allowed || !d[1-i].Allowed {
							t.Errorf("%s: %+v", name, d)
						}
					}
				})
			}
			group.Wait()
			_, lossy := others.Rule.Algorithm().(algorithms.Lossy)
			if after := state(); lossy && after != value {
				t.Errorf("%s: the state is %x, it was %x", name, after, value)
			}
			if left := take(t, s, others.Rule, others.Key, 0).Remaining; left != before {
				t.Errorf("%s: %d left, %d before", name, left, before)
			}
		}
	}
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
