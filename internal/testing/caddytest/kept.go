package caddytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Kept is a store in memory that the test can also ask by itself, under the rules of the handlers' zones.
type Kept struct {
	*Store
	rules  sync.Map // by zone
	opened atomic.Pointer[memorystore.Store]
	closed atomic.Bool
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
		k.opened.Store(s)
		k.closed.Store(false)
		return keptStore{s, k}, nil
	})
	return k
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
	err := k.Opened().Take(context.Background(), []store.Check{{Rule: rule, Key: key, Cost: cost}}, decisions[:])
	return decisions[0], err
}

// Used is how much of a zone's quota a key has used.
func (k *Kept) Used(t testing.TB, zone, key string) int64 {
	t.Helper()
	d, err := k.Take(zone, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d.Quota - d.Remaining
}

// Opened returns the store that handlers have opened.
func (k *Kept) Opened() *memorystore.Store { return k.opened.Load() }

// keptStore is what handlers open. It has all abilities of the store below.
type keptStore struct {
	*memorystore.Store
	kept *Kept
}

// Take implements [store.Store].
func (s keptStore) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	for i := range checks {
		s.kept.rules.Store(checks[i].Rule.Zone(), checks[i].Rule)
	}
	return s.Store.Take(ctx, checks, decisions)
}

// Close implements [store.Store].
func (s keptStore) Close() error {
	s.kept.closed.Store(true)
	return s.Store.Close()
}
