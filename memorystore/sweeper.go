package memorystore

import (
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// sweeper runs until Close. It drops expired states every interval, one shard at a time, logs
// when the store is too small for the keys that come, and renews leases.
func (s *Store) sweeper() {
	defer close(s.done)
	ticker, renewal := time.NewTicker(SweepInterval), time.NewTicker(store.RenewInterval)
	defer ticker.Stop()
	defer renewal.Stop()
	crowded := false
	for {
		select {
		case <-ticker.C:
			s.Sweep()
			crowded = s.report(crowded)
		case <-renewal.C:
			s.Renew()
		case <-s.stop:
			return
		}
	}
}

// Sweep drops expired states now. Only a store with its own clock needs a caller for it.
func (s *Store) Sweep() {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		shard.sweep(s.now())
		shard.mu.Unlock()
	}
	s.sweepNetworks()
}

// Keys returns how many keys are kept.
func (s *Store) Keys() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.Lock()
		n += s.shards[i].size()
		s.shards[i].mu.Unlock()
	}
	return n
}

// report logs when keys begin to share buckets, and when they no longer do.
func (s *Store) report(was bool) (crowded bool) {
	charges := s.shared.Swap(0)
	crowded = charges > 0
	switch {
	case crowded && !was:
		s.logger().Warn("memory store is full: new keys share buckets and may be refused because of each other; "+advice.RaiseKeys.With().String(),
			zap.Int("max_keys", s.maxKeys()),
			zap.Int64("shared_charges", charges))
	case was && !crowded:
		s.logger().Info("memory store has room again", zap.Int("keys", s.Keys()))
	}
	return crowded
}
