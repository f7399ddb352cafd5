package pool

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Take asks the store, and measures how long a remote one takes to answer.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if !s.Remote {
		return s.Store.Take(ctx, checks, decisions)
	}
	start := time.Now()
	err := s.Store.Take(ctx, checks, decisions)
	if latency := time.Since(start); latency >= minRoundTrip {
		s.Latency.Observe(latency)
	}
	return err
}

// minRoundTrip is less than the round trip to any server. A call that takes less was answered
// from the deny cache.
const minRoundTrip = 10 * time.Microsecond
