//go:build deep

package redisstore_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestReplicaIsNotDialedForEachCall: a server that stays a replica costs few connections.
func TestReplicaIsNotDialedForEachCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := server.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int64
	options := asking(server)
	options.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		made.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
	}
	s := open(t, options)
	s.Silence()
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10_000, Window: 1000 * time.Hour})
	began, calls := time.Now(), 500
	for range calls {
		if _, err := try(s, rule, "k", 1); !redis.HasErrorPrefix(err, "READONLY") {
			t.Fatal(err)
		}
	}
	// In each tenth of a second one call finds out if it still is one, which closes its connection and gives up the others.
	if made, most := made.Load(), 10+4*int64(time.Since(began)/(100*time.Millisecond)); made > most {
		t.Errorf("%d connections for %d calls in %v", made, calls, time.Since(began))
	}
}
