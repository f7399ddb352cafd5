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
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// examineTimeout bounds how long a store is examined.
const examineTimeout = 5 * time.Second

// showDiagnosis checks the running config, its zones and its stores, and compares the instances of its fleet.
func showDiagnosis(c *adminCall) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), examineTimeout)
	defer cancel()
	zones, stores := running.Zones(), running.Stores()
	facts := doctor.Facts{Stores: make([]doctor.Store, len(stores)), Adaptive: adaptive.Running(), Instances: c.view.Instances()}
	for _, h := range running.Current().All() {
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
		*of = doctor.Store{Store: s.Show(nil), Remote: s.Ref.Store.Remote}
		group.Go(func() { of.Examined, of.Err = examine(ctx, s) })
	}
	group.Wait()
	for i, s := range stores {
		for _, z := range s.Zones {
			of := factsOf(z, zones)
			of.Silent = !facts.Stores[i].Decides()
			facts.Zones = append(facts.Zones, of)
		}
	}
	slices.SortFunc(facts.Zones, func(a, b doctor.Zone) int { return cmp.Compare(a.Name, b.Name) })
	return doctor.Examine(&facts), nil
}

// examine has the store say how it is. One that cannot is asked to decide something.
func examine(ctx context.Context, s *running.Store) (*store.Examination, error) {
	session, err := s.Ref.Begin() // which keeps the store open
	if err != nil {
		return nil, err
	}
	defer session.End()
	examiner, ok := s.Ref.Store.Store.(store.Observed)
	if !ok {
		return nil, s.TryOut(ctx, s.Ref.Store.Store)
	}
	examined := examiner.Examine(ctx)
	return &examined, nil
}
