package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// conforms runs the contract on a topology.
func conforms(t *testing.T, options redisstore.Options, servers []*redistest.Server) {
	options.DenyCache = -1 // its clock does not stand still
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		for _, server := range servers {
			if err := server.Admin().FlushAll(context.Background()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, redisstore.WithoutRenewal(options))
		var today atomic.Int64
		s.SetToday(today.Load)
		setNow := func(now int64) {
			today.Store(now)
			s.SetNow(now)
		}
		setNow(storetest.Start)
		return prompt{s}, setNow
	})
}

// prompt is a store in which every request finds given back what the ones before it gave
// back: over several slots that takes a moment.
type prompt struct{ *redisstore.Store }

func (p prompt) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := p.Store.Take(ctx, checks, decisions)
	p.Settled()
	return err
}

// load asks all the time, each time for one of so many clients, until stopped.
type load struct {
	stop                      chan struct{}
	done                      sync.WaitGroup
	admitted, refused, failed atomic.Int64
	lastFailure               atomic.Pointer[error]
}

func startLoad(t *testing.T, s store.Store, rules []*store.Rule, key func() string) *load {
	l := &load{stop: make(chan struct{})}
	for range 8 {
		l.done.Go(func() {
			checks, decisions := make([]store.Check, len(rules)), make([]algorithms.Decision, len(rules))
			for {
				select {
				case <-l.stop:
					return
				case <-time.After(time.Millisecond):
				}
				k := key()
				for i, rule := range rules {
					checks[i] = store.Check{Rule: rule, Key: k, Cost: 1}
				}
				if err := s.Take(context.Background(), checks, decisions); err != nil {
					l.failed.Add(1)
					l.lastFailure.Store(&err)
				} else if decisions[0].Allowed {
					l.admitted.Add(1)
				} else {
					l.refused.Add(1)
				}
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

func (l *load) err() error {
	if err := l.lastFailure.Load(); err != nil {
		return *err
	}
	return nil
}

// awaitService waits until so many requests in a row are answered, which is soon.
func awaitService(t *testing.T, s store.Store, rule *store.Rule, key string) {
	t.Helper()
	start, inARow := time.Now(), 0
	patient.Until(t, "service", func() bool {
		var d [1]algorithms.Decision
		if inARow++; s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: 1}}, d[:]) != nil {
			inARow = 0
			time.Sleep(5 * time.Millisecond) // as long as a client takes to come again
		}
		return inARow == 20
	})
	t.Logf("service after %v", time.Since(start))
	patient.Soon(t, "service", time.Since(start), 2*time.Second)
}

// rules are two zones of a client, which a request meets both.
func twoZones(t testing.TB, events int64) []*store.Rule {
	return []*store.Rule{
		storetest.Rule(t, "narrow", "token_bucket", algorithms.Limit{Events: events, Window: 24 * time.Hour}),
		storetest.Rule(t, "wide", "fixed_window", algorithms.Limit{Events: 10 * events, Window: 24 * time.Hour}),
	}
}

func TestSentinel(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	options := redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs()}
	if deep.Run() { // what Sentinels lead to is a Redis like that of TestStore
		t.Run("Conforms", func(t *testing.T) { conforms(t, options, g.Servers()[:1]) })
	}

	t.Run("Failover", func(t *testing.T) {
		options := options
		options.Timeout = 200 * time.Millisecond
		s, rules := open(t, options), twoZones(t, 200)
		l := startLoad(t, s, rules, func() string { return "client" })
		until(t, func() bool { return l.refused.Load() > 0 })
		before := g.Master()
		before.Kill()
		g.AwaitSwitch(before)
		awaitService(t, s, rules[0], "other")
		l.end()
		// What was not yet copied is lost: at most what the old master admitted at last.
		if n := l.admitted.Load(); n > 2*200 {
			t.Errorf("%d admitted, the limit is 200", n)
		} else {
			t.Logf("%d admitted of 200, %d failed", n, l.failed.Load())
		}
		before.Restart()
		g.Await()
	})

	t.Run("Switchover", func(t *testing.T) {
		s, rules := open(t, options), twoZones(t, 1e6)
		l := startLoad(t, s, rules, func() string { return "client" })
		until(t, func() bool { return l.admitted.Load() > 100 })
		g.Failover()
		awaitService(t, s, rules[0], "other")
		l.end()
		g.Await()
	})

	t.Run("MasterAndSentinelHang", func(t *testing.T) {
		options := options
		options.Timeout = 200 * time.Millisecond
		s, rules := open(t, options), twoZones(t, 1e6)
		awaitService(t, s, rules[0], "other")
		before := g.Master()
		g.Sentinels()[0].Freeze()
		before.Freeze()
		defer before.Thaw()
		defer g.Sentinels()[0].Thaw()
		until(t, func() bool {
			address, err := g.Sentinels()[1].Admin().Do(context.Background(), "sentinel", "get-master-addr-by-name", redistest.MasterName).StringSlice()
			return err == nil && "127.0.0.1:"+address[1] != before.Addr()
		})
		awaitService(t, s, rules[0], "other")
	})
}

func TestSentinelOfNoSuchMaster(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	s := open(t, redisstore.Options{MasterName: "nobody", Addresses: g.Addrs(), Timeout: 500 * time.Millisecond})
	until(t, func() bool { // all Sentinels have said so
		err := attempt(s, hourly(t))
		return err != nil && containsAll(err.Error(), `no sentinel says where the master "nobody" is`, "watches no such master")
	})
}

func TestSentinelWithTLSAndUsers(t *testing.T) {
	patient.BesideOthers(t)
	acl := leastACL(t)
	g := redistest.StartSentinel(t,
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("master"), redistest.WithUser("limiter", "s3cret", acl...)},
		[]redistest.Option{redistest.WithTLS(true), redistest.WithPassword("sentinel"), redistest.WithUser("finder", "s3cret2", sentinelACL(t)...)})
	files := g.Servers()[0].TLS()
	works(t, open(t, redisstore.Options{
		Mode: redisstore.ModeSentinel, MasterName: redistest.MasterName, Addresses: g.TLSAddrs(),
		Username: "limiter", Password: "s3cret", SentinelUsername: "finder", SentinelPassword: "s3cret2",
		TLS: &redisstore.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key},
	}))
}

func TestCluster(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 1)
	options := redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs()[:2]}
	t.Run("Conforms", func(t *testing.T) { conforms(t, options, c.Nodes()[:3]) })
	t.Run("Works", func(t *testing.T) { works(t, open(t, options)) })

	t.Run("SlotsAreTheServers", func(t *testing.T) {
		for _, key := range []string{"", "a", "rl:{203.0.113.7}:zone:token_bucket.1", "{}", "a{}b", "a{b", "{{a}}", "}{a}{b}"} {
			if got, want := redisstore.SlotOf(key), c.SlotOf(key); int(got) != want {
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
		for i := range 200 { // of 20 clients 10 requests each, 3 of which may pass
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
		s.Settled()
		// What is given back a moment later may refuse meanwhile, and never admits.
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
		slot := int(redisstore.SlotOf("{" + tag + "}"))
		others := sameSlot(slot, 200)
		hot := startLoad(t, s, rules, func() string { return tag })
		new := startLoad(t, s, rules, func() string { return others[fresh.Add(1)%int64(len(others))] })
		until(t, func() bool { return hot.admitted.Load() > 100 })
		from := c.MasterOf(s.Key(rules[0], tag))
		to := c.Nodes()[0]
		if from == to {
			to = c.Nodes()[1]
		}
		for range 2 {
			move := c.StartMove(slot, from, to)
			n := hot.admitted.Load()
			until(t, func() bool { return hot.admitted.Load() > n+50 })
			move.MoveKeys()
			n = hot.admitted.Load()
			until(t, func() bool { return hot.admitted.Load() > n+50 })
			move.Finish()
			n = hot.admitted.Load()
			until(t, func() bool { return hot.admitted.Load() > n+50 })
			from, to = to, from
		}
		until(t, func() bool { return hot.admitted.Load() >= limit })
		hot.end()
		new.end()
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
		rules := []*store.Rule{storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: limit, Window: 24 * time.Hour})}
		l := startLoad(t, s, rules, func() string { return "lost" })
		for range 50 {
			n := l.admitted.Load()
			until(t, func() bool { return l.admitted.Load() > n+5 })
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
		until(t, func() bool { return l.admitted.Load() == limit })
		steady := startLoad(t, s, twoZones(t, 1e6), func() string { return well })
		until(t, func() bool { return steady.admitted.Load() > 50 })
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

// TestClusterDown: slots without a node are refused by all, and served when they have one.
func TestClusterDown(t *testing.T) {
	patient.BesideOthers(t)
	c := redistest.StartCluster(t, 3, 0)
	s, rule := open(t, redisstore.Options{Mode: redisstore.ModeCluster, Addresses: c.Addrs(), Timeout: 200 * time.Millisecond}), hourly(t)
	until(t, func() bool { return attempt(s, rule) == nil })
	ctx := context.Background()
	for _, node := range c.Nodes() {
		if err := node.Admin().ConfigSet(ctx, "cluster-require-full-coverage", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}
	dead := c.Nodes()[0]
	if dead == c.MasterOf(s.Key(rule, "client")) {
		dead = c.Nodes()[1]
	}
	dead.Kill()
	until(t, func() bool { return attempt(s, rule) != nil })
	t.Logf("down: %v", attempt(s, rule))
	// The other nodes answer, and the one that does not counts.
	until(t, func() bool {
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
}

// sameSlot returns tags of one slot.
func sameSlot(slot, n int) (tags []string) {
	for i := rand.IntN(1 << 30); len(tags) < n; i++ {
		if tag := strconv.Itoa(i); int(redisstore.SlotOf("{"+tag+"}")) == slot {
			tags = append(tags, tag)
		}
	}
	return tags
}

func until(t *testing.T, is func() bool) {
	t.Helper()
	patient.Until(t, "what the test is about", is)
}
