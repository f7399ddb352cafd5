package pool

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Take asks the store, and notes how long a server took to answer.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if !s.Remote {
		return s.Store.Take(ctx, checks, decisions)
	}
	start := time.Now()
	err := s.Store.Take(ctx, checks, decisions)
	if took := time.Since(start); took >= leastTrip {
		s.Latency.Observe(took)
	}
	return err
}

// leastTrip is less than any server takes to answer: what is quicker was decided without
// one, by what the store remembers.
const leastTrip = 10 * time.Microsecond
