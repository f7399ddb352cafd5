package admin

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// examineTimeout bounds how long a store is examined.
const examineTimeout = 5 * time.Second

// examinations are the checks under way. A store that hangs keeps a connection busy for each.
var examinations = make(chan struct{}, 4)

// showDiagnosis checks the running config, its zones and its stores.
func showDiagnosis(c *adminCall) error {
	if err := c.checkParameters(); err != nil {
		return err
	}
	found, err := diagnose(context.WithoutCancel(c.request.Context()))
	if err != nil {
		return err
	}
	return c.writeJSON(found)
}

// diagnose checks the running config, its zones and its stores.
func diagnose(ctx context.Context) (none adminapi.Diagnosis, err error) {
	select {
	case examinations <- struct{}{}:
		defer func() { <-examinations }()
	default:
		return none, adminError(http.StatusTooManyRequests, "%d checks are under way: wait for them", cap(examinations))
	}
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	zones, stores := runningZones(), runningStores()
	facts := doctor.Facts{Servers: servers(), Stores: make([]doctor.Store, len(stores)), Adaptive: adaptive.Running(), Warnings: warnings()}
	peers := make([]peers, len(stores))
	var group sync.WaitGroup
	for i, s := range stores {
		group.Go(func() { facts.Stores[i] = s.examine(ctx) })
		group.Go(func() { peers[i] = s.peers(ctx) })
	}
	group.Wait()
	for i, s := range stores {
		facts.Stores[i].Fleet = peers[i].fleet
		for _, z := range s.zones {
			of := z.facts(zones, &facts.Stores[i], &peers[i])
			if !facts.Stores[i].Silent() {
				of.Rules = z.overruled(ctx)
			}
			facts.Zones = append(facts.Zones, of)
		}
	}
	slices.SortFunc(facts.Zones, func(a, b doctor.Zone) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(facts.Stores, func(a, b doctor.Store) int { return cmp.Compare(a.Name, b.Name) })
	return doctor.Examine(&facts), nil
}

// servers returns the servers that have rate limit handlers, each once.
func servers() (all []doctor.Server) {
	for _, h := range runningHandlers() {
		if h.Clients == nil || slices.ContainsFunc(all, func(s doctor.Server) bool { return s.Name == h.Clients.Server }) {
			continue
		}
		all = append(all, doctor.Server{
			Name: h.Clients.Server, Trusted: h.Clients.Trusted, TrustsSockets: h.Clients.TrustsSockets,
			Strict: h.Clients.Strict, Headers: h.Clients.Headers,
		})
	}
	return all
}

// warnings returns what loading the config has warned of, without naming a zone.
func warnings() (all []string) {
	for _, h := range runningHandlers() {
		for _, text := range h.Warnings[""] {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// examine collects what is known of a store.
func (s *runningStore) examine(ctx context.Context) doctor.Store {
	shared := s.store.Store
	facts := doctor.Store{Name: storeName(s.store), InProcess: !shared.Remote, Failing: !shared.Health.Answers(), Busy: shared.Health.Busy()}
	if observed, ok := shared.Store.(store.Observed); ok {
		stats := observed.Stats()
		facts.Breaker, facts.Mute = stats.Breaker, stats.Silent
	}
	if shared.Remote {
		lately := shared.Lately.Read()
		facts.Asked, facts.P50, facts.P99 = lately.Count(), lately.Quantile(0.5), lately.Quantile(0.99)
	}
	session, err := s.store.Begin() // which keeps the store open
	if err != nil {
		facts.Err = err
		return facts
	}
	defer session.End()
	if examiner, ok := shared.Store.(store.Observed); ok {
		examined := examiner.Examine(ctx)
		facts.Examined = &examined
		return facts
	}
	i := slices.IndexFunc(s.zones, func(z *runningZone) bool { return len(z.Rules()) > 0 })
	if i < 0 {
		return facts
	}
	facts.Tested = true
	facts.Err = shared.Store.Take(ctx, []store.Check{{Rule: s.zones[i].Rules()[0]}}, make([]algorithms.Decision, 1))
	return facts
}
