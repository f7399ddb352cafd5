//go:build deep

package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// fill fills the memory of a Redis, and drain gives it memory again.
func fill(server *redistest.Server)  { server.Configure("maxmemory", "1") }
func drain(server *redistest.Server) { server.Configure("maxmemory", "0") }

// limited is a server whose only user has the rights that docs/redis.md names, and a store that asks
// it for each request.
func limited(t *testing.T) (*redistest.Server, *redisstore.Store) {
	server := redistest.Start(t, redistest.WithUser("limiter", "s3cret", leastACL(t)...))
	return server, open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", DenyCache: -1})
}

// lasting returns a limit of an algorithm whose window does not end during a test.
func lasting(t *testing.T, name string, events int64) *store.Rule {
	window := 1000 * time.Hour
	if name == "concurrency" {
		window = time.Hour // the longest lease
	}
	return storetest.Rule(t, name, name, storetest.Limit(name, events, window))
}

// stays fails the test unless the breaker is closed.
func stays(t *testing.T, s *redisstore.Store) {
	t.Helper()
	if state := s.Breaker(); state != store.BreakerClosed {
		t.Errorf("the breaker is %s", state)
	}
}

// TestFullRedisDecides: a Redis without memory refuses clients that have used up their limit, and
// answers peeks. What would be charged fails with an error that says so, is not charged, and opens no breaker.
func TestFullRedisDecides(t *testing.T) {
	t.Parallel()
	server, s := limited(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			rule := lasting(t, name, 5)
			take(t, s, rule, "used up", 5)
			take(t, s, rule, "known", 2)
			fill(server)
			defer drain(server)
			for range 20 { // more requests than would open the breaker
				if d := take(t, s, rule, "used up", 1); d.Allowed {
					t.Fatal("the limit is exceeded")
				}
				for _, key := range []string{"new", "known"} {
					if _, err := try(s, rule, key, 1); !errors.Is(err, store.ErrFull) || store.Failure(err) != store.FailureOOM || node.MayHaveRun(err) {
						t.Fatalf("the %s key met %v", key, err)
					}
				}
				stays(t, s)
			}
			if n := server.Admin().Exists(t.Context(), s.Key(rule, "new")).Val(); n != 0 {
				t.Error("a key was made that has no room")
			}
			if d := take(t, s, rule, "new", 0); d.Remaining != 5 {
				t.Errorf("a peek at a new key: %+v", d)
			}
			if d := take(t, s, rule, "new", 6); d.Allowed || d.RetryAfter != algorithms.Never {
				t.Errorf("a cost above the limit: %+v", d)
			}
			drain(server)
			if d := take(t, s, rule, "new", 1); d.Remaining != 4 {
				t.Errorf("with memory again: %+v", d)
			}
			if d := take(t, s, rule, "known", 0); d.Remaining != 3 {
				t.Errorf("%d are left, want 3", d.Remaining)
			}
		})
	}
}
