package simplestore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestLeases: a slot is held until it is given back, and for no longer than its lease after the
// store is closed. States that no longer count are dropped.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simplestore.New(1, nil)
		closeAtEnd(t, s)
		rule := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 1, Lease: 10 * time.Second})
		take := func(key string) (bool, store.Check) {
			c := store.Check{Rule: rule, Key: key, Cost: 1, LeaseID: store.NewLeaseID()}
			var d [1]algorithms.Decision
			err := s.Take(t.Context(), []store.Check{c}, d[:])
			if err != nil && !errors.Is(err, store.ErrFull) {
				t.Fatal(err)
			}
			return err == nil && d[0].Allowed, c
		}
		ok, held := take("key")
		if !ok {
			t.Fatal("the first slot is refused")
		}
		time.Sleep(time.Hour)
		if ok, _ := take("key"); ok {
			t.Error("a slot is lent twice: its lease was not renewed")
		}
		if n := s.Stats().InUse["slots"]; n != 1 {
			t.Errorf("%d slots are in use, want 1", n)
		}
		s.Adjust(store.Adjustment{Check: held, Delta: -1})
		if ok, held = take("key"); !ok {
			t.Error("a slot that was given back is refused")
		}
		s.Adjust(store.Adjustment{Check: held, Delta: -1})
		time.Sleep(2 * time.Minute) // until the state is dropped
		if n := s.CountKeys([]*store.Rule{rule})[0]; n != 0 {
			t.Errorf("%d keys are kept, want 0", n)
		}
		if ok, _ := take("other"); !ok {
			t.Error("another key has no room")
		}
	})
}
