package redisstore

import "github.com/seed-161337e5/caddyratelimit/store"

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats {
	stats := store.Stats{Held: s.holds.ByZone(), Breaker: s.Breaker()}
	stats.Lost, _ = s.returns.losses()
	if !s.denied.off() {
		stats.DenyHits = uint64(s.denied.hits.Load())
	}
	return stats
}

var _ store.Observed = (*Store)(nil)
