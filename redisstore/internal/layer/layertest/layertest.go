// Package layertest has what the tests of a layer share: a layer below it that needs no Redis, and a store made
// of the layer.
package layertest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Below is a layer in this process.
type Below struct {
	*memorystore.Store
	now atomic.Int64
}

// New makes a layer whose clock stands still until SetNow sets it.
func New(t testing.TB) *Below {
	t.Helper()
	b := new(Below)
	var err error
	if b.Store, err = memorystore.New(memorystore.Options{Now: b.now.Load}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// SetNow sets the clock, in microseconds since 1970, and Now returns its time.
func (b *Below) SetNow(micros int64) { b.now.Store(micros) }

// Now returns the time on the clock.
func (b *Below) Now() int64 { return b.now.Load() }

// Forget implements [layer.Layer].
func (*Below) Forget(*store.Rule, string) {}

// Store is a store that is made of a layer on another.
type Store struct {
	*memorystore.Store
	Top layer.Layer
}

// Take implements [store.Store].
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if err := layer.Validate(checks); err != nil || len(checks) == 0 {
		return err
	}
	return s.Top.Take(ctx, checks, decisions)
}

// Adjust implements [store.Store].
func (s *Store) Adjust(adjustments ...store.Adjustment) { s.Top.Adjust(adjustments...) }

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	s.Top.Forget(rule, key)
	defer s.Top.Forget(rule, key)
	return s.Store.Reset(ctx, rule, key)
}
