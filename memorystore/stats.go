package memorystore

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats { return store.Stats{InUse: s.leases.ByZone()} }

// Examine implements [store.Observed].
func (s *Store) Examine(context.Context) store.Examination {
	return store.Examination{Keys: s.Keys(), MaxKeys: s.maxKeys(), Sharing: s.shared.Load() > 0}
}

// CountKeys implements [store.InProcess]. It locks one shard after the other, while it
// counts the keys in it. Keys that share buckets are not counted.
func (s *Store) CountKeys(rules []*store.Rule) []int64 {
	counts := make([]int64, len(rules))
	index := make(map[uint32]int, len(rules))
	for i, rule := range rules {
		if _, known := index[zoneOf(rule)]; !known {
			index[zoneOf(rule)] = i
		}
	}
	now := s.now()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		count(&shard.numbers, now, index, counts)
		count(&shard.logs, now, index, counts)
		count(&shard.leases, now, index, counts)
		shard.mu.Unlock()
	}
	return counts
}

// count adds the keys that have not expired to the counts of their zones.
func count[V any](kept *table[V], now int64, index map[uint32]int, counts []int64) {
	for i := range kept.slots {
		s := &kept.slots[i]
		if zone, ok := index[uint32(s.id[1])]; ok && s.id[0] != 0 && s.expires > now {
			counts[zone]++
		}
	}
}

// zoneOf returns a hash of the zone. It is a part of the ID of every key of the zone, whatever
// the family of the state, so that keys can be counted by zone.
func zoneOf(rule *store.Rule) uint32 { return uint32(rule.ZoneHash() ^ rule.Salt()) }

// Interface guards
var (
	_ store.Observed  = (*Store)(nil)
	_ store.InProcess = (*Store)(nil)
)
