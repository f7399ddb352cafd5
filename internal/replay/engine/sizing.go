package engine

import (
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/limit"
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
		if z.window == 0 && !z.lends || z.zone.OwnPolicies.Fixed == nil {
			continue
		}
		s.sizes = replay.SizesOf(z.peaks())
		s.sizes.Person = z.person(s.sizes.P999)
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
			add(true, z.curve(max(minCurve, maxCurve/len(reported)))...)
		}
		for _, events := range slices.Sorted(maps.Keys(tried)) {
			trials = append(trials, tried[events])
		}
	}
	return all, trials
}

// peaks returns the peaks of all keys, and of those that look like people.
func (z *zoneTally) peaks() (all, people []int64) {
	for _, k := range z.keys {
		if k.peak.most == 0 { // it has charged nothing
			continue
		}
		all = append(all, k.peak.most)
		if k.person.looksHuman() {
			people = append(people, k.peak.most)
		}
	}
	return all, people
}

// person returns the key with a peak that looks like a person.
func (z *zoneTally) person(peak int64) (key string) {
	for name, k := range z.keys {
		if k.peak.most == peak && k.person.looksHuman() && (key == "" || name < key) {
			key = name
		}
	}
	return key
}

const (
	// maxCurve bounds the limits of all curves together, and minCurve those of a curve.
	maxCurve = 24
	minCurve = 6
)

// curve returns round numbers from the median of the peaks to the largest, at most n.
func (z *zoneTally) curve(n int) (limits []int64) {
	all, _ := z.peaks()
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	for at := replay.Round(all[len(all)/2]); ; at = replay.Round(at + 1) {
		limits = append(limits, at)
		if at >= all[len(all)-1] {
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
	l.MaxEvents = &limit.Amount{Number: events}
	if _, err := z.zone.With("", l); err != nil {
		return nil, err
	}
	return &trial{Try: replay.Try{Zone: z.name}, limit: l}, nil
}

// suggest adds the suggestion to what is reported of the zone.
func (s *sizing) suggest(made *replay.Zone) {
	if s.reference == nil {
		why := "no request has charged it"
		if s.zone.zone.OwnPolicies.Fixed == nil {
			why = "its limit depends on the request"
		}
		made.Suggestion = &replay.Suggestion{Failure: why, Reasons: []string{}}
		return
	}
	var refused, held int64
	for key, n := range s.reference.tally {
		refused += n
		if k := s.zone.keys[key]; k != nil && k.peak.most > s.sizes.Limit {
			held += n
		}
	}
	per := ""
	if !s.zone.lends {
		per = "/" + s.zone.zone.Window.Format()
	}
	made.Suggestion = s.sizes.Suggest(refused, held, per)
	for i := range made.WhatIf {
		made.WhatIf[i].Suggested = made.Suggestion.Limit != "" && made.WhatIf[i].Limit == made.Suggestion.Limit
	}
}
