package redisstore

import "github.com/seed-161337e5/caddyratelimit/store"

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats {
	return store.Stats{Held: s.holds.ByZone(), Breaker: s.Breaker(), DenyHits: uint64(s.denied.hits.Load())}
}

var _ store.Observed = (*Store)(nil)
