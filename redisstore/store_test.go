package redisstore_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m.Run)) }

// TestStore: a user with the rights that docs/redis.md names can do all that a store does. What can be read of the time is
// in a key here; TestInstances has Redis's own clock.
func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		server := redistest.Shared(t)
		options := least(t, server)
		grant(t, server, options.Username, "+scan")
		options.DenyCache = -1
		return withClock(t, server, options)
	})
}

// at returns the options of a store with a server and the test's prefix.
func at(server *redistest.Server) redisstore.Options {
	return redisstore.Options{Address: server.Addr(), KeyPrefix: server.Prefix()}
}

// asking returns those of a store that asks for each request.
func asking(server *redistest.Server) redisstore.Options {
	o := at(server)
	o.DenyCache = -1
	return o
}

// clockKey is where the test sets the time.
func clockKey(server *redistest.Server) string { return server.Prefix() + ":now" }

// openWithClock makes a store whose script reads the time that the test sets.
func openWithClock(t testing.TB, server *redistest.Server) (*redisstore.Store, func(int64)) {
	t.Helper()
	return withClock(t, server, asking(server))
}

func withClock(t testing.TB, server *redistest.Server, options redisstore.Options) (*redisstore.Store, func(int64)) {
	t.Helper()
	s := clocked(t, server, options)
	var today atomic.Int64
	s.SetToday(today.Load)
	setNow := func(now int64) {
		today.Store(now)
		if err := server.Admin().Set(context.Background(), clockKey(server), now, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	setNow(storetest.Start)
	return s, setNow
}

// clocked makes a store whose script reads the time that the test sets.
func clocked(t testing.TB, server *redistest.Server, options redisstore.Options) *redisstore.Store {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = 10 * time.Second
	}
	s, err := redisstore.NewWithClock(options, clockKey(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s
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
