package running

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store is a store with its zones.
type Store struct {
	Ref   *pool.Ref
	Zones []*Zone

	instances int // the smallest number in the config; 0 without one
}

// Stores returns the stores of the newest config that runs, sorted by name.
func Stores() []*Store { return Current().Stores() }

// Stores returns the stores of a config, sorted by name.
func (c *Config) Stores() (stores []*Store) {
	byID := make(map[string]*Store)
	for _, h := range c.All() {
		if byID[h.Store.ID] == nil {
			byID[h.Store.ID] = &Store{Ref: h.Store}
			stores = append(stores, byID[h.Store.ID])
		}
		if s := byID[h.Store.ID]; h.Instances > 0 && (s.instances == 0 || h.Instances < s.instances) {
			s.instances = h.Instances
		}
	}
	for _, z := range c.Zones() {
		s := byID[z.Store.ID]
		s.Zones = append(s.Zones, z)
	}
	slices.SortStableFunc(stores, func(a, b *Store) int { return strings.Compare(a.Name(), b.Name()) })
	return stores
}

// Name returns the name of the store in the admin API.
func (s *Store) Name() string { return StoreName(s.Ref) }

// StoreName returns the name of a store in the admin API.
func StoreName(ref *pool.Ref) string {
	return strings.TrimPrefix(pool.Describe(ref.Backend), "store ")
}

// Show returns the store as the admin API shows it, without asking it. The numbers of keys are those of its zones in memory.
func (s *Store) Show(counts map[string]int64) adminapi.Store {
	shared := s.Ref.Store
	answer := adminapi.Store{Name: s.Name(), Zones: []string{}}
	for _, z := range s.Zones {
		answer.Zones = append(answer.Zones, z.Name)
	}
	answer.Failing, answer.Busy = !shared.Health.Answers(), shared.Health.Busy()
	answer.FailingSince = shared.Health.DownSince()
	if observed, ok := shared.Store.(store.Observed); ok {
		stats := observed.Stats()
		answer.Breaker, answer.DenyCacheHits, answer.LostCorrections = stats.Breaker, stats.DenyHits, stats.Lost
		for _, silent := range stats.Silent {
			answer.Silent = append(answer.Silent, adminapi.SilentServer{Address: silent.Address, Since: silent.Since, Error: silent.Err.Error()})
		}
	}
	answer.ConfiguredInstances = s.instances
	if fleet, ok := shared.Store.(store.Fleet); ok {
		answer.Instances = fleet.Instances()
	}
	if _, ok := shared.Store.(store.InProcess); ok && counts != nil {
		keys := int64(0)
		for _, z := range s.Zones {
			keys += counts[z.Name]
		}
		answer.Keys = &keys
	}
	if shared.Remote {
		took := shared.Lately.Read(&shared.Latency)
		answer.Latency = &adminapi.Latency{Count: took.Count(), P50: took.Quantile(0.5).Seconds(), P99: took.Quantile(0.99).Seconds()}
		answer.Errors = make(map[string]int64)
		for kind := range shared.Health.Errors {
			answer.Errors[kind] = shared.Health.ErrorCount(kind)
		}
	}
	return answer
}

// TryOut has the store decide something that changes no limit, if there is a zone with one.
func (s *Store) TryOut(ctx context.Context, of store.Store) error {
	i := slices.IndexFunc(s.Zones, (*Zone).HasLimit)
	if i < 0 {
		return nil
	}
	return of.Take(ctx, []store.Check{{Rule: s.Zones[i].Rules()[0]}}, make([]algorithms.Decision, 1))
}

// Shared returns the stores by which processes tell each other something.
func Shared() []*Store {
	return slices.DeleteFunc(Stores(), func(s *Store) bool {
		_, ok := s.Ref.Store.Store.(store.Shared)
		return !ok
	})
}

// KeyCounts returns the numbers of keys of zones, by name, in stores that can count them. They have to look at all of their keys.
func KeyCounts(stores ...*Store) map[string]int64 {
	counts := make(map[string]int64)
	for _, s := range stores {
		counter, ok := s.Ref.Store.Store.(store.InProcess)
		if !ok {
			continue
		}
		var rules []*store.Rule
		for _, z := range s.Zones {
			rules, counts[z.Name] = append(rules, z.Rules()...), 0
		}
		for i, n := range counter.CountKeys(rules) {
			counts[rules[i].Zone()] += n
		}
	}
	return counts
}
