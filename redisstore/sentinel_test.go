package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func TestSentinel(t *testing.T) {
	patient.BesideOthers(t)
	g := redistest.StartSentinel(t, nil, nil)
	options := redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs()}
	if deep.Run() { // the Redis behind Sentinels is like that of TestStore
		t.Run("Conforms", func(t *testing.T) { conforms(t, options, g.Servers()[:1]) })
	}

	t.Run("Failover", func(t *testing.T) {
		options := options
		options.Timeout = 200 * time.Millisecond
		s, rules := open(t, options), twoZones(t, 200)
		l := startLoad(t, s, rules, func() string { return "client" })
		lending := []*store.Rule{lendingRule(t, "lent", "fixed_window", algorithms.Limit{Events: 200, Window: 1000 * time.Hour}, 50*time.Millisecond)}
		lent := startLoad(t, s, lending, func() string { return "client" })
		patient.Until(t, "the limit to be used up", func() bool { return l.refused.Load() > 0 && lent.refused.Load() > 0 })
		before := g.Master()
		before.Kill()
		g.AwaitSwitch(before)
		awaitService(t, s, rules[0], "other")
		l.end()
		lent.end()
		// Charges that were not yet copied are lost: at most those that the old master admitted
		// at last. What was lent then is lent again when its borrower asks.
		for _, l := range []*load{l, lent} {
			if n := l.admitted.Load(); n > 2*200 {
				t.Errorf("%d admitted, the limit is 200", n)
			} else {
				t.Logf("%d admitted of 200, %d failed", n, l.failed.Load())
			}
		}
		before.Restart()
		g.Await()
	})

	t.Run("Switchover", func(t *testing.T) {
		s, rules := open(t, options), twoZones(t, 1e6)
		l := startLoad(t, s, rules, func() string { return "client" })
		patient.Until(t, "requests before the switch", func() bool { return l.admitted.Load() > 100 })
		g.Failover()
		awaitService(t, s, rules[0], "other")
		l.end()
		g.Await()
	})

	// However often another server becomes the master, service comes back, and each failover loses at most the limit once more.
	t.Run("FailoversInARow", func(t *testing.T) {
		options := options
		options.Timeout = 200 * time.Millisecond
		s, rules := open(t, options), twoZones(t, 200)
		l := startLoad(t, s, rules, func() string { return "in a row" })
		failovers := deep.Steps(1, 11)
		for i := range failovers {
			refused := l.refused.Load()
			patient.Until(t, "the limit to be used up", func() bool { return l.refused.Load() > refused })
			if before := g.Master(); i%2 == 0 {
				g.Failover()
			} else {
				before.Kill()
				g.AwaitSwitch(before)
				before.Restart()
			}
			awaitService(t, s, rules[0], "other")
			g.Await()
		}
		l.end()
		if n := l.admitted.Load(); n > int64(1+failovers)*200 {
			t.Errorf("%d admitted after %d failovers, the limit is 200", n, failovers)
		} else {
			t.Logf("%d admitted of 200 over %d failovers, %d failed", n, failovers, l.failed.Load())
		}
	})

	// The Sentinels are not asked again, and no call fails: the old master stays, and decides.
	t.Run("SwitchoverIsHeard", func(t *testing.T) {
		s, rule := open(t, options), hourly(t)
		s.PollRarely()
		take(t, s, rule, "heard", 0)
		g.Failover()
		patient.Until(t, "the new master to be used", func() bool {
			take(t, s, rule, "heard", 0)
			return s.Servers()[0] == g.Master().Addr()
		})
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
		patient.Until(t, "another master", func() bool {
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
	patient.Until(t, "an error that says what all Sentinels answer", func() bool {
		err := attempt(s, hourly(t))
		return err != nil && containsAll(err.Error(), `no sentinel answers where the master "nobody" is`, `watches no master "nobody"`)
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
