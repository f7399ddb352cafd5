package caddytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Kept is a store that the test can also ask by itself, under the rules of the handlers' zones.
type Kept struct {
	*Store
	rules  sync.Map     // by zone
	opened atomic.Value // a keptStore
	closed atomic.Bool
}

type keptStore struct{ store.Store }

// EachStore runs a test with a store in memory and with one in Redis.
func EachStore(t *testing.T, test func(t *testing.T, kept *Kept)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, KeepMemory(t, memorystore.Options{})) })
	t.Run("redis", func(t *testing.T) {
		test(t, KeepRedis(t, redisstore.Options{Address: redistest.Start(t).Addr(), Timeout: 10 * time.Second}))
	})
}

// KeepMemory makes a memory store of the test's own.
func KeepMemory(t testing.TB, options memorystore.Options) *Kept {
	t.Helper()
	k := new(Kept)
	k.Store = NewStore(t, func() (store.Store, error) {
		s, err := memorystore.New(options)
		if err != nil {
			return nil, err
		}
		return k.open(s, keptMemory{s, k}), nil
	})
	return k
}

// KeepRedis makes a store in Redis.
func KeepRedis(t testing.TB, options redisstore.Options) *Kept {
	t.Helper()
	k := new(Kept)
	k.Store = NewStore(t, func() (store.Store, error) {
		s, err := redisstore.New(options)
		if err != nil {
			return nil, err
		}
		return k.open(s, keptRedis{s, k}), nil
	})
	return k
}

func (k *Kept) open(s, watched store.Store) store.Store {
	k.opened.Store(keptStore{s})
	k.closed.Store(false)
	return watched
}

func (k *Kept) remember(checks []store.Check) {
	for i := range checks {
		k.rules.Store(checks[i].Rule.Zone(), checks[i].Rule)
	}
}

// Closed reports whether the handlers have closed the store.
func (k *Kept) Closed() bool { return k.closed.Load() }

// Rule returns the rule under which a handler has last asked about a zone. It is nil if no
// request has met the zone.
func (k *Kept) Rule(zone string) *store.Rule {
	rule, _ := k.rules.Load(zone)
	known, _ := rule.(*store.Rule)
	return known
}

// Take decides one check, as the store does for a request that meets the zone alone. At
// cost 0 it charges nothing.
func (k *Kept) Take(zone, key string, cost int64) (algorithms.Decision, error) {
	rule := k.Rule(zone)
	if rule == nil {
		return algorithms.Decision{}, fmt.Errorf("no request has met zone %q", zone)
	}
	var decisions [1]algorithms.Decision
	err := k.ask().Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: cost}}, decisions[:])
	return decisions[0], err
}

// adjust changes a charge of [Kept.Take].
func (k *Kept) adjust(zone, key string, cost, delta int64, d *algorithms.Decision) {
	k.ask().Adjust(store.Adjustment{
		Check: store.Check{Rule: k.Rule(zone), Key: key, Cost: cost}, At: d.At, Turn: d.Turn(), Delta: delta,
	})
}

// Used is how much of a zone's quota a key has used, once all adjustments that were made before
// have been carried out, or given up. The store carries them out in order.
func (k *Kept) Used(t testing.TB, zone, key string) int64 {
	t.Helper()
	look := func(key string, cost int64) (used int64, d algorithms.Decision) {
		patient.Until(t, "an answer", func() bool {
			var err error
			d, err = k.Take(zone, key, cost)
			if err != nil && store.Failure(err) != store.FailureTimeout { // which a busy machine is enough for
				t.Fatal(err)
			}
			return err == nil
		})
		return d.Quota - d.Remaining, d
	}
	lost := func() uint64 {
		if s, ok := k.ask().(store.Observed); ok {
			return s.Stats().Lost
		}
		return 0
	}
	const last = "key of the last adjustment"
	for done := false; !done; { // or it was given up, too
		lostBefore := lost()
		before, d := look(last, 1)
		k.adjust(zone, last, 1, -1, &d)
		patient.Until(t, "the last adjustment", func() bool {
			used, _ := look(last, 0)
			done = used < before
			return done || lost() > lostBefore
		})
	}
	used, _ := look(key, 0)
	return used
}

// Opened returns the store that handlers have opened.
func (k *Kept) Opened() store.Store { return k.ask() }

func (k *Kept) ask() store.Store { return k.opened.Load().(keptStore).Store }

// keptMemory and keptRedis are what handlers open. They have all abilities of the stores
// below.
type keptMemory struct {
	*memorystore.Store
	kept *Kept
}

func (s keptMemory) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.kept.remember(checks)
	return s.Store.Take(ctx, checks, decisions)
}

func (s keptMemory) Close() error {
	s.kept.closed.Store(true)
	return s.Store.Close()
}

type keptRedis struct {
	*redisstore.Store
	kept *Kept
}

func (s keptRedis) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.kept.remember(checks)
	return s.Store.Take(ctx, checks, decisions)
}

func (s keptRedis) Close() error {
	s.kept.closed.Store(true)
	return s.Store.Close()
}
