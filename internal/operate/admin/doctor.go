package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// examineTimeout bounds how long a store is examined.
const examineTimeout = 5 * time.Second

// showDiagnosis checks the running config, its zones and its stores, and compares the instances of its fleet.
func showDiagnosis(c *adminCall) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), examineTimeout)
	defer cancel()
	zones, stores := runningZones(), runningStores()
	facts := doctor.Facts{Servers: servers(), Stores: make([]doctor.Store, len(stores)), Adaptive: adaptive.Running(), Warnings: warnings()}
	if c.view != nil {
		for _, m := range c.view.Members {
			facts.Instances = append(facts.Instances, m.Instance)
		}
	}
	var group sync.WaitGroup
	for i, s := range stores {
		of := &facts.Stores[i]
		*of = doctor.Store{Store: s.known(nil), Remote: s.store.Store.Remote}
		group.Go(func() { of.Examined, of.Err = s.examine(ctx) })
	}
	group.Wait()
	for i, s := range stores {
		for _, z := range s.zones {
			of := z.facts(zones)
			of.Silent = !facts.Stores[i].Decides()
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

// examine has the store say how it is. One that cannot is asked to decide something.
func (s *runningStore) examine(ctx context.Context) (*store.Examination, error) {
	session, err := s.store.Begin() // which keeps the store open
	if err != nil {
		return nil, err
	}
	defer session.End()
	examiner, ok := s.store.Store.Store.(store.Observed)
	if !ok {
		return nil, s.tryOut(ctx, s.store.Store.Store)
	}
	examined := examiner.Examine(ctx)
	return &examined, nil
}
