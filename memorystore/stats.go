package memorystore

import (
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
		if _, known := of[zoneOf(rule)]; !known {
			of[zoneOf(rule)] = i
		}
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

// zoneOf stands in the hashes of a zone's keys as it is, so that they can be counted,
// whatever family their states are of.
func zoneOf(rule *store.Rule) uint32 { return uint32(rule.ZoneHash() ^ rule.Salt()) }

// Interface guards
var (
	_ store.Observed   = (*Store)(nil)
	_ store.KeyCounter = (*Store)(nil)
)
