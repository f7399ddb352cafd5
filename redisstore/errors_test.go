package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestOpenBreakerCostsNothing: while the breaker is open, a request makes no allocation, and
// sends no packet to a dead Redis.
func TestOpenBreakerCostsNothing(t *testing.T) {
	dead := net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
	s, rule := open(t, redisstore.Options{Address: dead}), hourly(t)
	for attempt(s, rule) != nil && s.Breaker() == "closed" {
	}
	checks, decisions := []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1)
	refused := 0
	allocations := testing.AllocsPerRun(10_000, func() {
		if errors.Is(s.Take(context.Background(), checks, decisions), store.ErrUnavailable) {
			refused++
		}
	})
	// A probe each half second allocates, and tests that run at the same time do, too. With the race detector a pool
	// loses a part of what it has.
	if allocations > float64(deep.Racing(1, 0))+0.5 || refused < 9_000 {
		t.Errorf("%v allocations a request, %d refused of 10000", allocations, refused)
	}
}
