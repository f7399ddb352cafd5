package simplestore

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What a store can do beyond [store.Store] are optional interfaces. Without one of them, the
// commands, metrics or options that need it say that the store does not have it.
var (
	_ store.Observed  = (*Store)(nil) // a metric for slots in use
	_ store.InProcess = (*Store)(nil) // no server is asked, and a metric for the number of keys
)

// CountKeys implements [store.InProcess].
func (s *Store) CountKeys(rules []*store.Rule) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	zones := make(map[keyName]int64)
	for name := range s.states {
		zones[keyName{zone: name.zone, salt: name.salt}]++
	}
	counts := make([]int64, len(rules))
	for i, rule := range rules {
		zone := keyOf(rule, "")
		counts[i] = zones[zone]
		delete(zones, zone) // the first rule of a zone has its number
	}
	return counts
}

// Stats implements [store.Observed].
func (s *Store) Stats() store.Stats { return store.Stats{InUse: s.leases.ByZone()} }

// Examine implements [store.Observed].
func (s *Store) Examine(context.Context) store.Examination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Examination{Keys: len(s.states)}
}
