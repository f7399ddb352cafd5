package admin

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// runningStore is a store with its zones.
type runningStore struct {
	store *pool.Ref
	zones []*runningZone

	instances int // the smallest number in the config; 0 without one
}

func runningStores() []*runningStore { return running().stores() }

// stores returns the stores of a config, sorted by name.
func (c *Config) stores() (stores []*runningStore) {
	byID := make(map[string]*runningStore)
	for _, h := range c.All() {
		if byID[h.Store.ID] == nil {
			byID[h.Store.ID] = &runningStore{store: h.Store}
			stores = append(stores, byID[h.Store.ID])
		}
		if s := byID[h.Store.ID]; h.Instances > 0 && (s.instances == 0 || h.Instances < s.instances) {
			s.instances = h.Instances
		}
	}
	for _, z := range c.zones() {
		s := byID[z.Store.ID]
		s.zones = append(s.zones, z)
	}
	slices.SortStableFunc(stores, func(a, b *runningStore) int { return strings.Compare(storeName(a.store), storeName(b.store)) })
	return stores
}

func showStores(c *adminCall) (any, error) {
	stores := runningStores()
	answers := make([]adminapi.Store, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() {
			answers[i] = s.known(keyCounts(s))
			s.probe(c, &answers[i])
		})
	}
	group.Wait()
	return answers, nil
}

// storeName returns the name of a store in the admin API.
func storeName(ref *pool.Ref) string {
	return strings.TrimPrefix(pool.Describe(ref.Backend), "store ")
}

// known describes the store without asking it. The numbers of keys are those of its zones in memory.
func (s *runningStore) known(counts map[string]int64) adminapi.Store {
	shared := s.store.Store
	answer := adminapi.Store{Name: storeName(s.store), Zones: []string{}}
	for _, z := range s.zones {
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
		for _, z := range s.zones {
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

// probe makes a test call that changes no limit.
func (s *runningStore) probe(c *adminCall, answer *adminapi.Store) {
	err := peek.WithStore(c.request.Context(), s.store, func(ctx context.Context, probed store.Store) error {
		if prober, ok := probed.(store.Shared); ok { // requests of some keys may be decided although others are not
			_, err := prober.Probe(ctx)
			return err
		}
		return s.tryOut(ctx, probed)
	})
	answers := err == nil
	if answer.Answers = &answers; !answers {
		answer.Error = err.Error()
	}
}

func hasLimit(z *runningZone) bool { return len(z.Rules()) > 0 }

// tryOut has the store decide something that changes no limit, if there is a zone with one.
func (s *runningStore) tryOut(ctx context.Context, of store.Store) error {
	i := slices.IndexFunc(s.zones, hasLimit)
	if i < 0 {
		return nil
	}
	return of.Take(ctx, []store.Check{{Rule: s.zones[i].Rules()[0]}}, make([]algorithms.Decision, 1))
}
