package admin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// runningStore is a store with the zones that it keeps.
type runningStore struct {
	kept  *pool.Ref
	zones []*runningZone
}

func runningStores() (stores []*runningStore) {
	byID := make(map[string]*runningStore)
	for _, h := range runningHandlers() {
		if byID[h.Store.ID] == nil {
			byID[h.Store.ID] = &runningStore{kept: h.Store}
			stores = append(stores, byID[h.Store.ID])
		}
	}
	for _, z := range runningZones() {
		s := byID[z.kept.ID]
		s.zones = append(s.zones, z)
	}
	return stores
}

func showStores(c *adminCall) error {
	if err := c.known(); err != nil {
		return err
	}
	stores := runningStores()
	answers := make([]adminapi.Store, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() { answers[i] = s.answer(c) })
	}
	group.Wait()
	slices.SortStableFunc(answers, func(a, b adminapi.Store) int { return strings.Compare(a.Name, b.Name) })
	return c.answer(answers)
}

// storeName is what the admin API calls a store.
func storeName(kept *pool.Ref) string {
	return strings.TrimPrefix(pool.Describe(kept.Backend), "store ")
}

func (s *runningStore) answer(c *adminCall) adminapi.Store {
	shared := s.kept.Store
	answer := adminapi.Store{
		Name: storeName(s.kept), Backend: s.kept.Backend.(caddy.Module).CaddyModule().ID.Name(), Zones: []string{},
	}
	for _, z := range s.zones {
		answer.Zones = append(answer.Zones, z.Name)
	}
	if detailed, ok := s.kept.Backend.(store.Detailer); ok {
		answer.Details = detailed.Details()
	}
	s.probe(c, &answer)
	answer.Failing = !shared.Health.Answers()
	if observed, ok := shared.Store.(store.Observed); ok {
		stats := observed.Stats()
		answer.Breaker, answer.DenyCacheHits, answer.LostCorrections = stats.Breaker, stats.DenyHits, stats.Lost
		answer.InUse = maps.Clone(stats.Held)
	}
	if fleet, ok := shared.Store.(store.Fleet); ok {
		answer.Instances = fleet.Instances()
	}
	if _, ok := shared.Store.(store.KeyCounter); ok {
		keys := int64(0)
		for _, n := range keyCounts(s.zones) {
			keys += n
		}
		answer.Keys = &keys
	}
	if shared.Remote {
		answer.Latency = latencyOf(&shared.Latency)
		answer.Errors = make(map[string]int64)
		for kind := range shared.Health.Errors {
			answer.Errors[kind] = shared.Health.ErrorCount(kind)
		}
	}
	return answer
}

// probe asks the store for something that changes nothing.
func (s *runningStore) probe(c *adminCall, answer *adminapi.Store) {
	i := slices.IndexFunc(s.zones, func(z *runningZone) bool { return len(z.Rules()) > 0 })
	if i < 0 {
		return
	}
	start := time.Now()
	err := using(s.kept, c, func(ctx context.Context, kept store.Store) error {
		return kept.Take(ctx, []store.Check{{Rule: s.zones[i].Rules()[0]}}, make([]algorithms.Decision, 1))
	})
	answer.Took = time.Since(start).Seconds()
	answers := err == nil
	if answer.Answers = &answers; !answers {
		answer.Error = err.Error()
	}
}

func latencyOf(h *stats.Histogram) *adminapi.Latency {
	count, sum, _ := h.Read(0)
	if count == 0 {
		return new(adminapi.Latency)
	}
	return &adminapi.Latency{
		Count: count, Mean: sum / float64(count), P50: h.Quantile(0.5).Seconds(), P99: h.Quantile(0.99).Seconds(),
	}
}
