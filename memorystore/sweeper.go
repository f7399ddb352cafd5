package memorystore

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// sweeper drops expired states every interval, one shard at a time, says when the store
// has become too small for the keys it sees, and renews leases.
func (s *Store) sweeper() {
	defer close(s.done)
	interval := s.sweepInterval()
	ticker, renewal := time.NewTicker(interval), time.NewTicker(store.RenewInterval)
	defer ticker.Stop()
	defer renewal.Stop()
	crowded := false
	for {
		select {
		case <-ticker.C:
			s.Sweep()
			crowded = s.report(crowded)
		case <-renewal.C:
			s.renew()
		case <-s.changed:
			// Reloads that change nothing must not put the sweep off again and again.
			if next := s.sweepInterval(); next != interval {
				interval = next
				ticker.Reset(interval)
			}
		case <-s.stop:
			return
		}
	}
}

// Sweep drops expired states now. The sweeper calls it; nobody else has to.
func (s *Store) Sweep() {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		shard.sweep(s.now())
		shard.mu.Unlock()
	}
}

// Keys is how many keys are kept.
func (s *Store) Keys() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += s.shards[i].size()
		s.shards[i].mu.Unlock()
	}
	return n
}

// report writes one line when keys have begun to share buckets, and one when they no
// longer do.
func (s *Store) report(was bool) (crowded bool) {
	charges := s.shared.Swap(0)
	crowded = charges > 0
	switch {
	case crowded && !was:
		s.logger().Warn("memory store is full: new keys share buckets and may be refused for each other's sake; raise max_keys",
			zap.Int("max_keys", s.maxKeys()),
			zap.Int64("shared_charges", charges))
	case was && !crowded:
		s.logger().Info("memory store has room again", zap.Int("keys", s.Keys()))
	}
	return crowded
}
