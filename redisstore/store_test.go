package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestStore(t *testing.T) {
	deep.InTurn(t)
	t.Parallel()
	server := redistest.Start(t)
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		if err := server.Admin().FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		return openWithClock(t, server)
	})
}

const clockKey = "test:now"

// openWithClock makes a store whose script reads the time that the test sets.
func openWithClock(t testing.TB, server *redistest.Server) (*redisstore.Store, func(int64)) {
	t.Helper()
	s, err := redisstore.NewWithClock(redisstore.Options{Address: server.Addr(), Timeout: 10 * time.Second, DenyCache: -1}, clockKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	var today atomic.Int64
	s.SetToday(today.Load)
	setNow := func(now int64) {
		today.Store(now)
		if err := server.Admin().Set(context.Background(), clockKey, now, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	setNow(storetest.Start)
	return s, setNow
}

// open makes a store as users have it.
func open(t testing.TB, options redisstore.Options) *redisstore.Store {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second // tests may be slow; the default is for gateways
	}
	s, err := redisstore.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
}

func closed(t testing.TB, s *redisstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
