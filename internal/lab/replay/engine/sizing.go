package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

const (
	// maxCurve bounds the limits of all curves together, and minCurve those of a curve.
	maxCurve = 24
	minCurve = 6
)

// attempts measures the peaks of clients, and returns the limits to try in a second pass. So many zones are reported.
func (z *zoneTally) attempts(o *replay.Options, zones int) (all []*attempt) {
	var clients, hours []replay.Client
	for key, k := range z.keys {
		if k.peak.most > 0 {
			signs, shared := k.looks()
			one := replay.Client{Key: key, Peak: k.peak.most, Human: len(signs) > 0, Shared: shared}
			clients = append(clients, one)
			one.Peak = k.hourly.most
			hours = append(hours, one)
		}
	}
	if window := z.window; 0 < window && window < time.Hour.Microseconds() {
		z.hours = replay.SizesOf(hours)
	}
	if z.sizes = replay.SizesOf(clients); len(clients) == 0 || z.Own.Fixed() == nil {
		return nil
	}
	tried := make(map[int64]*attempt)
	add := func(curve bool, limits ...int64) {
		for _, events := range limits {
			l := z.Limit
			l.MaxEvents = &config.Amount{Number: events}
			// A limit that the algorithm cannot have is not tried.
			if _, err := z.With(l); err == nil && tried[events] == nil {
				tried[events] = attemptOf(z.Name, &l)
				tried[events].Curve = curve
			}
		}
	}
	if o.Suggest {
		add(false, z.sizes.Reference, z.sizes.Limit, replay.Round(2*z.sizes.Limit), replay.Round(4*z.sizes.Limit))
	}
	if o.Curve {
		add(true, curve(clients, max(minCurve, maxCurve/zones))...)
	}
	for _, events := range slices.Sorted(maps.Keys(tried)) {
		all = append(all, tried[events])
	}
	return all
}

// curve returns round numbers from the median of the sorted peaks to the largest, at most n.
func curve(clients []replay.Client, n int) (limits []int64) {
	for at := replay.Round(clients[len(clients)/2].Peak); ; at = replay.Round(at + 1) {
		limits = append(limits, at)
		if at >= clients[len(clients)-1].Peak {
			break
		}
	}
	every, kept := (len(limits)+n-1)/n, limits[:0]
	for i, at := range limits { // the last one is among them
		if (len(limits)-1-i)%every == 0 {
			kept = append(kept, at)
		}
	}
	return kept
}

// suggest adds the suggestion to what is reported of the zone.
func (z *zoneTally) suggest(made *replay.Zone) {
	per, _ := window(&z.Limit)
	switch {
	case z.Own.Fixed() == nil:
		made.Suggestion = &replay.Suggestion{Failure: "its limit depends on the request", Reasons: []string{}}
	case z.sizes.Clients == 0:
		made.Suggestion = &replay.Suggestion{Failure: "no request was charged in this zone", Reasons: []string{}}
	default:
		made.Suggestion = z.sizes.Suggest(per)
	}
	if hours := z.hours.InAnHour(z.Name); hours != "" && made.Suggestion.Limit == "" {
		made.Suggestion.Reasons = append(made.Suggestion.Reasons, hours)
	}
	for i := range made.WhatIf {
		made.WhatIf[i].Suggested = made.Suggestion.Limit != "" && made.WhatIf[i].Limit == made.Suggestion.Limit
	}
}
