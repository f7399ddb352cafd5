//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendPeek: a peek answers what the next request would be answered: by what this process holds, which is
// used for others.
func TestLendPeek(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder, other := open(t, redisstore.Options{Address: server.Addr()}), open(t, redisstore.Options{Address: server.Addr()})
	take := func(s *redisstore.Store, c store.Check) algorithms.Decision {
		t.Helper()
		var d [1]algorithms.Decision
		if err := s.Take(t.Context(), []store.Check{c}, d[:]); err != nil {
			t.Fatal(err)
		}
		return d[0]
	}
	parts := store.Check{Rule: lendingRule(t, "parts", "sliding_window_log", algorithms.Limit{Events: 1000, Window: time.Hour}, 10*time.Second), Key: "k", Cost: 1}
	for range 50 {
		take(holder, parts)
	}
	rest := parts
	for rest.Cost = 64; rest.Cost > 0; { // all that is free
		if !take(other, rest).Allowed {
			rest.Cost /= 2
		}
	}
	peek, foreseen := parts, 0
	for peek.Peek = true; take(holder, peek).Allowed; foreseen++ {
		if d := take(other, peek); d.Allowed {
			t.Fatalf("another process sees %+v", d)
		}
		if d := take(holder, parts); !d.Allowed {
			t.Fatalf("request %d: %+v", foreseen, d)
		}
	}
	if d := take(holder, parts); d.Allowed || foreseen == 0 {
		t.Fatalf("after %d requests: %+v", foreseen, d)
	}
}
