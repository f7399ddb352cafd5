package redisstore_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestSentinelSplit: a master that hung while another one took over, and comes back, admits
// nothing more. A Sentinel that does not know the new master is outvoted by two others.
func TestSentinelSplit(t *testing.T) {
	t.Parallel()
	g := redistest.StartSentinel(t, nil, nil)
	ctx := context.Background()
	s := open(t, redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs(), Timeout: 2 * time.Second, DenyCache: -1})
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 20, Window: 1000 * time.Hour})
	check := []store.Check{{Rule: rule, Key: "k", Cost: 1}}
	d := make([]algorithms.Decision, 1)
	for range 10 {
		if err := s.Take(ctx, check, d); err != nil || !d[0].Allowed {
			t.Fatalf("%v, %+v", err, d)
		}
	}
	before, behind := g.Master(), g.Sentinels()[2]
	if n, err := before.Admin().Do(ctx, "wait", 1, 0).Int(); err != nil || n < 1 {
		t.Fatalf("%d replicas have all: %v", n, err)
	}
	behind.Freeze()
	defer behind.Thaw()
	before.Freeze()
	defer before.Thaw()
	says := func(sentinel *redistest.Server) string {
		address, err := sentinel.Admin().Do(ctx, "sentinel", "get-master-addr-by-name", redistest.MasterName).StringSlice()
		if err != nil {
			return ""
		}
		return "127.0.0.1:" + address[1]
	}
	for _, sentinel := range g.Sentinels()[:2] {
		patient.Until(t, "another master", func() bool { a := says(sentinel); return a != "" && a != before.Addr() })
	}
	admitted := 0
	patient.Until(t, "the new master to be used", func() bool {
		err := s.Take(ctx, check, d)
		if err == nil && d[0].Allowed {
			admitted++
		}
		return err == nil
	})
	before.Thaw()
	for _, sentinel := range g.Sentinels()[:2] {
		sentinel.Freeze()
		defer sentinel.Thaw()
	}
	behind.Thaw()
	own, first, refused := 0, 0, false
	patient.Until(t, "the limit to be used up, and the Sentinel that is behind to be asked a few times", func() bool {
		if err := s.Take(ctx, check, d); err == nil && d[0].Allowed {
			admitted++
		} else if err == nil {
			refused = true
		}
		info, err := behind.Admin().InfoMap(ctx, "stats").Result()
		if err != nil {
			return false
		}
		own++
		commands, _ := strconv.Atoi(info["Stats"]["total_commands_processed"])
		if first == 0 {
			first = commands
		}
		return refused && commands-first-own > 8 // two for each time
	})
	if admitted != 10 {
		t.Errorf("%d admitted after a failover, and 10 before, of 20", admitted)
	}
}

// TestOverridesOnAReplica: a Redis that cannot write knows which keys are banned, exempt, or used
// up, and refuses changes.
func TestOverridesOnAReplica(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t), redistest.Start(t)
	ctx := context.Background()
	check := banning(t, 3)
	check.KeyRules.Overrides = true
	s := open(t, redisstore.Options{Address: master.Addr(), DenyCache: -1})
	at := func(key string) store.Check { c := check; c.Key = key; return c }
	for key, override := range map[string]store.Override{"exempt": {Kind: store.KindExempt}, "banned": {Kind: store.KindBanned}} {
		if err := s.Set(ctx, check.Rule, key, override); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, s, at("used"))
	replica.Follow(master)
	r := open(t, redisstore.Options{Address: replica.Addr(), DenyCache: -1})
	for range 10 {
		if d := ask(t, r, at("exempt"))[0]; !d.Exempt {
			t.Errorf("exempt: %+v", d)
		}
		if d := ask(t, r, at("banned"))[0]; !d.Banned {
			t.Errorf("banned: %+v", d)
		}
		if d := ask(t, r, at("used"))[0]; d.Allowed {
			t.Errorf("used up: %+v", d)
		}
	}
	for what, err := range map[string]error{
		"set":   r.Set(ctx, check.Rule, "new", store.Override{Kind: store.KindExempt}),
		"clear": r.Clear(ctx, check.Rule, "exempt"),
		"unban": r.Unban(ctx, check.Rule, "banned"),
	} {
		if !redis.HasErrorPrefix(err, "READONLY") && store.Failure(err) != store.FailureReadonly {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestOverridesOfTwoAtOnce: two gateways set and clear one override at once. Each request meets
// one of the overrides or none, and no limit is exceeded.
func TestOverridesOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ctx := context.Background()
	both := []*redisstore.Store{open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})}
	rule := storetest.Rule(t, "z", "fixed_window", algorithms.Limit{Events: 5, Window: 1000 * time.Hour})
	check := store.Check{Rule: rule, Key: "k", Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
	own := store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 7, Window: 1000 * time.Hour}, For: time.Hour}
	changes := []func(s *redisstore.Store) error{
		func(s *redisstore.Store) error { return s.Set(ctx, rule, "k", store.Override{Kind: store.KindExempt}) },
		func(s *redisstore.Store) error { return s.Set(ctx, rule, "k", own) },
		func(s *redisstore.Store) error { return s.Clear(ctx, rule, "k") },
		func(s *redisstore.Store) error { return s.Set(ctx, rule, "k", store.Override{Kind: store.KindBanned}) },
		func(s *redisstore.Store) error { return s.Unban(ctx, rule, "k") },
	}
	stop := make(chan struct{})
	var mu sync.Mutex
	admitted := make(map[int64]int64) // by quota
	var changing, asking sync.WaitGroup
	for n, s := range both {
		asking.Go(func() {
			for d := make([]algorithms.Decision, 1); ; {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.Take(ctx, []store.Check{check}, d); err != nil {
					t.Error(err)
				} else if d[0].Allowed && !d[0].Exempt {
					mu.Lock()
					admitted[d[0].Quota]++
					mu.Unlock()
				}
			}
		})
		for m := range 2 {
			changing.Go(func() {
				for i := range 200 {
					if err := changes[(i+n+2*m)%len(changes)](s); err != nil {
						t.Error(err)
					}
					if _, err := s.Get(ctx, rule, "k"); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	changing.Wait()
	close(stop)
	asking.Wait()
	for quota, n := range admitted {
		if n > quota || quota != 5 && quota != 7 {
			t.Errorf("%d admitted under a limit of %d", n, quota)
		}
	}
	t.Log(admitted)
}
