package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/say"
)

const (
	maxTop    = 20
	maxNamed  = 1000 // peaks whose keys are named
	daySteps  = 1440
	stripSize = 144 // steps of a key
	maxName   = 60
)

// result returns what was read, without zones.
func (e *engine) result(m *merged) *replay.Result {
	t := e.tallies
	r := &replay.Result{Requests: t.requests, Clients: len(t.clients), Zones: []*replay.Zone{}}
	if t.requests > 0 {
		r.From, r.To = time.UnixMicro(t.from).UTC(), time.UnixMicro(t.to).UTC()
	}
	r.Unknown = e.unknown.all(e, m.sum(r))
	return r
}

// Unjudged requests: it says why requests were not judged in a zone; nothing if all were. If none met it, the log often is of another site.
func (t *tallies) unjudged(z *zoneTally, met int64) string {
	switch {
	case z.notJudged > 0:
		return fmt.Sprintf("not judged: %s (%s requests)", z.why, replay.Count(z.notJudged))
	case met > 0:
		return ""
	case t.host == "":
		return "no request met this zone"
	}
	return "no request met this zone. The first one of the log is for " + t.host
}

// reportOf returns what is known of a zone before it has done anything.
func reportOf(z *zone.Zone) *replay.Zone {
	made := &replay.Zone{
		Name: z.Name, Limit: z.Description, Key: z.Template.Form(), DryRun: z.Rollout() != "",
		Outcomes: make(map[string]int64), Top: []*replay.Key{}, PeakKeys: []string{},
	}
	if p := z.Own.Fixed(); p != nil {
		made.Events = p.Numbers.Events
		if !p.Slots {
			made.Window, made.Length = p.Window.Length().Seconds(), p.Window.Format()
		}
	}
	return made
}

// report returns what a zone has done.
func (e *engine) report(z *zoneTally, attempts []*attempt) *replay.Zone {
	made := z.report
	made.Keys, made.Series = len(z.keys), e.tallies.series(z.cells, daySteps)
	for _, s := range z.stats { // only they tell
		if n := s.Totals()[outcome.Exempt]; n > 0 {
			made.Outcomes[outcome.Names[outcome.Exempt]] += int64(n)
		}
	}
	for _, n := range made.Outcomes {
		made.Requests += n
	}
	made.Unjudged = e.tallies.unjudged(z, made.Requests)
	byPeak := slices.SortedFunc(maps.Values(z.keys), func(a, b *keyTally) int {
		return cmp.Or(cmp.Compare(b.peak.most, a.peak.most), cmp.Compare(a.key, b.key))
	})
	var peaks []int64
	for i, k := range byPeak {
		peaks = append(peaks, k.peak.most)
		if i < maxNamed {
			made.PeakKeys = append(made.PeakKeys, say.Cut(k.key, maxName))
		}
		if k.refused == 0 && made.Busiest == nil && k.peak.most > 0 {
			made.Busiest = &replay.Peak{Key: k.key, Used: k.peak.most}
		}
	}
	made.Peaks = replay.Ranks(peaks)
	refused := slices.DeleteFunc(byPeak, func(k *keyTally) bool { return k.refused == 0 })
	slices.SortStableFunc(refused, func(a, b *keyTally) int { return cmp.Compare(b.refused, a.refused) })
	made.KeysRefused = len(refused)
	for _, k := range refused[:min(len(refused), maxTop)] {
		signs, shared := k.looks()
		made.Top = append(made.Top, &replay.Key{
			Key: k.key, Requests: k.requests, Refused: k.refused, FirstRefused: time.UnixMicro(k.first).UTC(), Peak: k.peak.most,
			About: replay.About(k.status, signs, shared), Agent: k.agent, Signs: signs, Series: e.tallies.series(k.cells, stripSize),
		})
	}
	made.WhatIf = z.whatIf(made, attempts)
	return made
}

// whatIf returns what other limits would have done, and the one in the config among them.
func (z *zoneTally) whatIf(made *replay.Zone, attempts []*attempt) []replay.WhatIf {
	rows := []replay.WhatIf{{
		Limit: labelOf(&z.Limit), Events: made.Events, Window: made.Window, Refused: made.Refused, KeysRefused: made.KeysRefused, Configured: true,
	}}
	for _, t := range attempts {
		if t.zone == z.Name {
			t.KeysRefused = len(t.keys)
			rows = append(rows, t.WhatIf)
		}
	}
	if len(rows) == 1 {
		return rows[:0]
	}
	for i := range rows {
		rows[i].Suggested = made.Suggestion != nil && made.Suggestion.Limit == rows[i].Limit
	}
	slices.SortStableFunc(rows, func(a, b replay.WhatIf) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.Events, b.Events))
	})
	return slices.CompactFunc(rows, func(a, b replay.WhatIf) bool { return a.Limit == b.Limit })
}
