package memorystore

import (
	"hash/maphash"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats { return store.Stats{Held: s.holds.ByZone()} }

// CountKeys implements [store.KeyCounter]. It holds one shard at a time, for as long as
// it takes to look at its part of the keys. Keys that share buckets are not counted.
func (s *Store) CountKeys(rules []*store.Rule) []int64 {
	counts := make([]int64, len(rules))
	of := make(map[uint32]int, len(rules))
	for i, rule := range rules {
		of[uint32(s.zone(rule))] = i
	}
	now := s.now()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		tell(shard.numbers, now, of, counts)
		tell(shard.logs, now, of, counts)
		tell(shard.leases, now, of, counts)
		shard.mu.Unlock()
	}
	return counts
}

func tell[V interface{ expired(int64) bool }](kept map[stateID]V, now int64, of map[uint32]int, counts []int64) {
	for id, v := range kept {
		if i, ok := of[uint32(id[1])]; ok && !v.expired(now) {
			counts[i]++
		}
	}
}

// zone is what a zone adds to the hashes of its keys. The lower half of it stands in
// them as it is, so that keys can be counted by zone.
func (s *Store) zone(rule *store.Rule) uint64 {
	return maphash.String(s.seeds[0], rule.ID()) ^ rule.Salt()
}

// Interface guards
var (
	_ store.Observed   = (*Store)(nil)
	_ store.KeyCounter = (*Store)(nil)
)
