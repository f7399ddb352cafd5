package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// sizing looks for a limit for a zone.
type sizing struct {
	zone      *zoneTally
	sizes     replay.Sizes
	reference *trial // nil if the zone has no limit of its own to replace
}

// plan measures the peaks of the zones that are reported, and returns the limits to try in a second
// pass.
func (p *pass) plan(o *replay.Options) (all []*sizing, trials []*trial) {
	reported := p.reported(o)
	for _, z := range reported {
		s := &sizing{zone: z}
		all = append(all, s)
		if z.window == 0 && !z.slots || z.zone.OwnPolicies.Fixed == nil {
			continue
		}
		clients := z.clients(p.tallies.span())
		s.sizes = replay.SizesOf(clients)
		if s.sizes.Clients == 0 {
			continue
		}
		tried := make(map[int64]*trial)
		add := func(curve bool, limits ...int64) {
			for _, events := range limits {
				// A limit that the algorithm cannot have is not tried.
				if t, err := z.trial(events); err == nil && tried[events] == nil {
					t.curve, tried[events] = curve, t
				}
			}
		}
		if o.Suggest {
			add(false, s.sizes.Reference, s.sizes.Limit, replay.Round(2*s.sizes.Limit), replay.Round(4*s.sizes.Limit))
			s.reference = tried[s.sizes.Reference]
		}
		if o.Curve {
			add(true, curve(clients, max(minCurve, maxCurve/len(reported)))...)
		}
		for _, events := range slices.Sorted(maps.Keys(tried)) {
			trials = append(trials, tried[events])
		}
	}
	return all, trials
}

// clients returns those that have charged something.
func (z *zoneTally) clients(span time.Duration) (all []replay.Client) {
	for key, k := range z.keys {
		if k.peak.most > 0 {
			signs, shared := k.person.signs(span)
			all = append(all, replay.Client{Key: key, Peak: k.peak.most, Human: len(signs) > 0, Shared: shared})
		}
	}
	return all
}

const (
	// maxCurve bounds the limits of all curves together, and minCurve those of a curve.
	maxCurve = 24
	minCurve = 6
)

// curve returns round numbers from the median of the sorted peaks to the largest, at most n.
func curve(clients []replay.Client, n int) (limits []int64) {
	for at := replay.Round(clients[len(clients)/2].Peak); ; at = replay.Round(at + 1) {
		limits = append(limits, at)
		if at >= clients[len(clients)-1].Peak {
			break
		}
	}
	for len(limits) > n { // every second one, and the last
		kept := limits[:0]
		for i, at := range limits {
			if (len(limits)-1-i)%2 == 0 {
				kept = append(kept, at)
			}
		}
		limits = kept
	}
	return limits
}

// trial returns a trial of the zone's own limit with another number of events.
func (z *zoneTally) trial(events int64) (*trial, error) {
	l := z.zone.Limit
	l.MaxEvents = &config.Amount{Number: events}
	if _, err := z.zone.With("", l); err != nil {
		return nil, err
	}
	return &trial{Try: replay.Try{Zone: z.name}, limit: l}, nil
}

// suggest adds the suggestion to what is reported of the zone.
func (s *sizing) suggest(made *replay.Zone, span time.Duration) {
	if s.reference == nil {
		why := "no request was charged in this zone"
		if s.zone.zone.OwnPolicies.Fixed == nil {
			why = "its limit depends on the request"
		}
		made.Suggestion = &replay.Suggestion{Failure: why, Reasons: []string{}}
		return
	}
	var refused, held int64
	for key, n := range s.reference.tally {
		k := s.zone.keys[key]
		if k != nil {
			if _, shared := k.person.signs(span); shared {
				continue
			}
		}
		if refused += n; k != nil && k.peak.most > s.sizes.Limit {
			held += n
		}
	}
	per := ""
	if !s.zone.slots {
		per = "/" + s.zone.zone.Window.Format()
	}
	made.Suggestion = s.sizes.Suggest(refused, held, per)
	for i := range made.WhatIf {
		made.WhatIf[i].Suggested = made.Suggestion.Limit != "" && made.WhatIf[i].Limit == made.Suggestion.Limit
	}
}
