package memorystore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func take(t testing.TB, s store.Store, rule *store.Rule, key string) algorithms.Decision {
	t.Helper()
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: 1, LeaseID: storetest.LeaseID(rule)}}, d[:]); err != nil {
		t.Fatal(err)
	}
	return d[0]
}

// TestFloodDoesNotFreeARefusedClient: Envoy keeps 20 keys and Traefik 65,536, and both evict
// clients that they refuse. Here a full store forgets no client, and no new client gets more
// than the limit.
func TestFloodDoesNotFreeARefusedClient(t *testing.T) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			s, setNow := openWith(t, memorystore.Options{MaxKeys: memorystore.MinMaxKeys})
			rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 1, time.Hour))
			var victims []string
			for i := range 100 {
				victims = append(victims, fmt.Sprint("victim ", i))
				take(t, s, rule, victims[i])
			}
			admitted := 0
			for i := range 20_000 {
				// Each new client comes twice, and must not pass twice.
				key := fmt.Sprint("flood ", i)
				first := take(t, s, rule, key).Allowed
				if take(t, s, rule, key).Allowed {
					t.Fatalf("%q passed twice in an hour", key)
				}
				if first {
					admitted++
				}
				setNow(storetest.Start + int64(i))
			}
			for _, v := range victims {
				if take(t, s, rule, v).Allowed {
					t.Fatalf("%q was freed by a flood", v)
				}
			}
			if keys := s.Keys(); keys > memorystore.MinMaxKeys+8192 {
				t.Errorf("%d keys are kept, the bound is %d and 8192 shared buckets", keys, memorystore.MinMaxKeys)
			}
			if admitted < memorystore.MinMaxKeys/2 {
				t.Errorf("only %d new clients were admitted", admitted)
			}
		})
	}
}

// TestNoAmnestyWhenThereIsRoomAgain: a client that was refused in a shared bucket is still
// refused once its key has a bucket of its own.
func TestNoAmnestyWhenThereIsRoomAgain(t *testing.T) {
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			s, setNow := openWith(t, memorystore.Options{MaxKeys: memorystore.MinMaxKeys})
			short := storetest.Rule(t, "short", name, storetest.Limit(name, 1, time.Second))
			long := storetest.Rule(t, "long", name, storetest.Limit(name, 1, time.Hour))
			for i := range 20_000 {
				take(t, s, short, fmt.Sprint(i))
			}
			for i := range 500 {
				take(t, s, long, fmt.Sprint("client ", i))
			}
			setNow(storetest.Start + 10_000_000)
			s.Sweep()
			for i := range 500 {
				if take(t, s, long, fmt.Sprint("client ", i)).Allowed {
					t.Fatalf("client %d passed twice in an hour", i)
				}
			}
		})
	}
}

// TestSweep: a sweep removes the keys that have expired, and no others.
func TestSweep(t *testing.T) {
	s, setNow := openWith(t, memorystore.Options{})
	for _, name := range algorithms.Names() {
		rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 5, time.Second))
		for i := range 10_000 {
			take(t, s, rule, fmt.Sprint(i))
		}
	}
	if n := s.Keys(); n != 10_000*len(algorithms.Names()) {
		t.Fatalf("%d keys, want 10000 for each algorithm", n)
	}
	setNow(storetest.Start + 500_000)
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 5, Window: time.Hour})
	take(t, s, rule, "stays")
	setNow(storetest.Start + 2_000_001)
	s.Sweep()
	if n := s.Keys(); n != 1 {
		t.Fatalf("%d keys after the sweep, want 1", n)
	}
	if take(t, s, rule, "stays").Remaining != 3 {
		t.Fatal("the sweep took a live key")
	}
}

// TestCrowdedIsLoggedOnce: one line when keys begin to share buckets, one when they no longer
// do.
func TestCrowdedIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		const interval = memorystore.SweepInterval
		s := openWithTimers(t, memorystore.Options{
			MaxKeys: memorystore.MinMaxKeys,
			Logger:  func() *zap.Logger { return zap.New(core) },
		})
		rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 100, Window: time.Second})
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			lines := logs.TakeAll()
			if len(lines) != len(want) || len(want) > 0 && !strings.Contains(lines[0].Message, want[0]) {
				t.Fatalf("%s: logged %v, want %q", when, lines, want)
			}
		}
		crowd := func() {
			for i := range 5000 {
				take(t, s, rule, fmt.Sprint(i%2500))
			}
		}
		for range 2 {
			crowd()
			expect("before a sweep")
			time.Sleep(interval)
			expect("keys share buckets", "memory store is full")
			crowd()
			time.Sleep(interval)
			expect("they still do")
			time.Sleep(interval)
			expect("all have expired", "has room again")
			time.Sleep(interval)
			expect("no client comes")
		}
	})
}
