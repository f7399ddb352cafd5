package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
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
	facts := doctor.Facts{Stores: make([]doctor.Store, len(stores)), Adaptive: adaptive.Running(), Instances: c.view.Instances()}
	for _, h := range running().All() {
		if of := h.Server; of != nil && !slices.ContainsFunc(facts.Servers, func(s doctor.Server) bool { return s.Server == of.Name() }) {
			facts.Servers = append(facts.Servers, doctor.Server{
				Server: of.Name(), Trusted: clientip.TrustedBy(of), TrustsSockets: of.TrustedProxiesUnix,
				Strict: of.TrustedProxiesStrict > 0, Headers: of.ClientIPHeaders,
			})
		}
		for _, text := range h.Warnings[""] {
			if !slices.Contains(facts.Warnings, text) {
				facts.Warnings = append(facts.Warnings, text)
			}
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
	return doctor.Examine(&facts), nil
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
