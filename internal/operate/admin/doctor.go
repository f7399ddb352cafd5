package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
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

// recent is how long ago a request from a proxy still says something of the present.
const recent = 10 * time.Minute

// factsOf collects what is known of a zone without its store and the other instances. All are the zones of the config.
func factsOf(z *running.Zone, all []*running.Zone) doctor.Zone {
	facts := doctor.Zone{Zone: z.Show(nil), SinceLoaded: z.SinceLoaded()}
	for _, use := range z.Uses {
		facts.Matches, facts.Missed = facts.Matches || len(use.Matchers) > 0, facts.Missed+use.Missed.Count()
		facts.Served = max(facts.Served, use.Requests.Count())
		judged, charged, last := use.Judged.Read()
		facts.Judged, facts.Charged, facts.LastStatus = facts.Judged+judged, facts.Charged+charged, max(facts.LastStatus, last)
	}
	for _, other := range all {
		facts.Elsewhere = max(facts.Elsewhere, other.SinceLoaded())
		if other.Store.Store.Remote && z.ByDefault {
			facts.Shared = running.StoreName(other.Store)
		}
	}
	facts.Variable, facts.Networks = z.Template.Varies(), z.Template.ByNetwork()
	facts.Addresses = z.Template.HasAddress && z.Template.NumPlaceholders() == 1
	facts.Spread, facts.MissingKey = z.Stats.Keys.Spread(), z.MissingKey.Word
	facts.Blocks, facts.Warnings, facts.OneKey = len(z.Block) > 0, z.Warnings, z.Template.Meant(z.Key) != ""
	facts.Unlimited, facts.Results = !z.HasLimit(), z.CostsSinceLoaded()
	for _, use := range z.Uses {
		// Clients may write the field themselves, if only a few requests have it.
		if last := use.Forwarded.Last(); last != nil && use.Forwarded.IsProxy() && time.Since(last.At) < recent {
			looked, forwarded := use.Forwarded.Counts()
			facts.Forwarded = fmt.Sprintf("%s (%d of %d); %s", last.Found, forwarded, looked, last.Fix)
		}
		facts.Closed = facts.Closed || use.Policy != nil && use.Policy.Numbers.Events == 0
	}
	if z.Template.NumPlaceholders() > 0 {
		keyless, _ := z.Stats.Keys.Of(z.Template.Empty)
		facts.Keyless = keyless.Counts[topk.Requests]
	}
	return facts
}
