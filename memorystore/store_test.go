package memorystore_test

import (
	"sync/atomic"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, open) }

// open returns a store whose clock the test moves.
func open(t testing.TB) (store.Store, func(int64)) {
	s, setNow := openWith(t, memorystore.Options{})
	return s, setNow
}

func openWith(t testing.TB, options memorystore.Options) (*memorystore.Store, func(int64)) {
	t.Helper()
	now := new(atomic.Int64)
	now.Store(storetest.Start)
	options.Now = now.Load
	return openWithTimers(t, options), now.Store
}

// openWithTimers returns a store that sweeps and renews by itself, unless the options have a
// clock. Tests with timers run in a bubble of testing/synctest.
func openWithTimers(t testing.TB, options memorystore.Options) *memorystore.Store {
	t.Helper()
	s, err := memorystore.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
