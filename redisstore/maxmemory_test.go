//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// crowd leaves a Redis little memory, which evicts nothing. It returns a check that Redis has
// taken no more than that.
func crowd(t *testing.T, server *redistest.Server) (check func()) {
	const (
		room   = 1 << 20
		margin = 200 << 10 // for what one call may add
	)
	most := memory(t, server, "used_memory") + room
	server.Configure("maxmemory-policy", "noeviction")
	server.Configure("maxmemory", strconv.Itoa(most))
	return func() {
		t.Helper()
		// The memory of connections does not count.
		used := memory(t, server, "used_memory") - memory(t, server, "mem_clients_normal")
		t.Logf("%d keys, %d bytes of at most %d", server.Admin().DBSize(context.Background()).Val(), used, most)
		if used > most+margin {
			t.Errorf("%d bytes are used, of at most %d", used, most)
		}
	}
}

// memory reads a figure of INFO memory.
func memory(t *testing.T, server *redistest.Server, name string) int {
	t.Helper()
	text, err := server.Admin().Info(context.Background(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, "\n"+name+":")
	value, _, _ = strings.Cut(value, "\r")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMaxmemoryHolds floods a full Redis with new keys of each algorithm, in calls that requests
// share and in calls of their own, and with late costs of new keys behind refunds that need no
// memory. Whatever the requests get, Redis takes no more memory than it may.
func TestMaxmemoryHolds(t *testing.T) {
	t.Parallel()
	const keys = 12_000 // each would take at least 120 bytes
	for _, name := range algorithms.Names() {
		for _, several := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/several=%v", name, several), func(t *testing.T) {
				server := redistest.Start(t)
				rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 100, time.Hour))
				other := storetest.Rule(t, "other", name, storetest.Limit(name, 100, time.Hour))
				var next atomic.Int64
				flood(t, server, func(s *redisstore.Store) (asked bool) {
					i := next.Add(1)
					if i > keys {
						return false
					}
					key := fmt.Sprintf("client-%032d", i)
					checks := []store.Check{{Rule: rule, Key: key, Cost: 1, LeaseID: storetest.LeaseID(rule)}}
					if several {
						checks = append(checks, store.Check{Rule: other, Key: key, Cost: 1, LeaseID: storetest.LeaseID(rule)})
					}
					_ = s.Take(context.Background(), checks, make([]algorithms.Decision, len(checks)))
					return true
				})
			})
		}
	}
}

// flood has several stores ask at once. It fills Redis when they are connected.
func flood(t *testing.T, server *redistest.Server, ask func(*redisstore.Store) bool) {
	var stores [4]*redisstore.Store
	for i := range stores {
		stores[i] = open(t, redisstore.Options{Address: server.Addr(), DenyCache: -1})
		ask(stores[i]) // connects
	}
	check := crowd(t, server)
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			for ask(stores[i%len(stores)]) {
			}
		})
	}
	group.Wait()
	check()
}
