package simplestore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/examples/simplestore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestStore: the store keeps the contract.
func TestStore(t *testing.T) { storetest.Run(t, open) }

func open(t testing.TB) (store.Store, func(int64)) {
	now := new(atomic.Int64)
	now.Store(storetest.Start)
	s := simplestore.New(1_000_000, now.Load)
	closeAtEnd(t, s)
	return s, now.Store
}

func closeAtEnd(t testing.TB, s store.Store) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFull: a store without room refuses what the limit refuses, and fails otherwise. Keys that
// are kept have room.
func TestFull(t *testing.T) {
	s := simplestore.New(2, func() int64 { return storetest.Start })
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 2, Window: time.Hour})
	var decisions [2]algorithms.Decision
	take := func(cost int64, keys ...string) error {
		var checks []store.Check
		for _, key := range keys {
			checks = append(checks, store.Check{Rule: rule, Key: key, Cost: cost})
		}
		return s.Take(context.Background(), checks, decisions[:])
	}
	for range 2 {
		if err := take(1, "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	if err := take(1, "c"); !errors.Is(err, store.ErrFull) {
		t.Errorf("a third key: %v", err)
	}
	if err := take(3, "c"); err != nil || decisions[0].Allowed {
		t.Errorf("a third key at a cost that never fits: %+v, %v", decisions[0], err)
	}
	if err := s.Reset(context.Background(), rule, "a"); err != nil {
		t.Fatal(err)
	}
	if err := take(1, "c"); err != nil || !decisions[0].Allowed {
		t.Errorf("a third key when there is room: %+v, %v", decisions[0], err)
	}
}
