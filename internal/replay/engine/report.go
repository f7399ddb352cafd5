package engine

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

const (
	maxTop    = 20
	mostHosts = 20   // that are reported
	maxNamed  = 1000 // peaks whose keys are named
)

// result returns what was read, without zones.
func (e *engine) result(m *merged) *replay.Result {
	t := e.tallies
	r := &replay.Result{Requests: t.requests, Clients: len(t.clients), Zones: []*replay.Zone{}}
	if t.requests > 0 {
		r.From, r.To = time.UnixMicro(t.from).UTC(), time.UnixMicro(t.to).UTC()
	}
	for _, name := range most(t.hosts, mostHosts) {
		r.Hosts = append(r.Hosts, replay.Host{Name: name, Requests: t.hosts[name]})
	}
	r.Unknown = e.unknown.all(e, m.sum(r))
	return r
}

// most returns the names with the highest numbers, at most n.
func most(all map[string]int64, n int) []string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	return names[:min(len(names), n)]
}

// report returns what a zone has done.
func (e *engine) report(z *zoneTally, attempts []*attempt) *replay.Zone {
	made := &replay.Zone{
		Name: z.Name, Limit: z.Description, Key: shortKey(z.Key), DryRun: z.Rollout() != "", NotJudged: z.notJudged, WhyNotJudged: z.why,
		Keys: len(z.keys), Refused: z.refused, Outcomes: make(map[string]int64), Top: []*replay.Key{}, Series: e.tallies.series(z.cells),
	}
	if p := z.OwnPolicies.Fixed; p != nil {
		made.Events = p.Numbers.Events
		switch p.Rule.Algorithm().(type) {
		case algorithms.TokenBucket, algorithms.LeakyBucket:
			made.Burst = cmp.Or(p.Numbers.Burst, p.Numbers.Events)
		}
		if !p.Slots {
			made.Window, made.Length = p.Numbers.Window.Length().Seconds(), p.Numbers.Window.Format()
		}
	}
	for _, s := range z.stats { // only they tell
		z.outcomes[outcome.Exempt] += int64(s.Totals()[outcome.Exempt])
	}
	for o, n := range z.outcomes {
		if made.Requests += n; n > 0 {
			made.Outcomes[outcome.Names[o]] = n
		}
	}
	if z.refused > 0 {
		first := time.UnixMicro(z.first).UTC()
		made.FirstRefused = &first
	}
	byPeak := slices.SortedFunc(maps.Values(z.keys), func(a, b *keyTally) int {
		return cmp.Or(cmp.Compare(b.peak.most, a.peak.most), cmp.Compare(a.key, b.key))
	})
	for i, k := range byPeak {
		made.Peaks = append(made.Peaks, k.peak.most)
		if i < maxNamed {
			made.PeakKeys = append(made.PeakKeys, k.key)
		}
		if k.refused == 0 && made.Busiest == nil && k.peak.most > 0 {
			made.Busiest = &replay.Peak{Key: k.key, Used: k.peak.most}
		}
	}
	refused := slices.DeleteFunc(byPeak, func(k *keyTally) bool { return k.refused == 0 })
	slices.SortStableFunc(refused, func(a, b *keyTally) int { return cmp.Compare(b.refused, a.refused) })
	made.KeysRefused = len(refused)
	for _, k := range refused[:min(len(refused), maxTop)] {
		made.Top = append(made.Top, e.key(k))
	}
	made.WhatIf = z.whatIf(made, attempts)
	return made
}

// key returns what has happened to a key that was refused.
func (e *engine) key(k *keyTally) *replay.Key {
	made := &replay.Key{
		Key: k.key, Requests: k.requests, Refused: k.refused, FirstRefused: time.UnixMicro(k.first).UTC(), Peak: k.peak.most,
		Status: k.status, Agent: k.agent, Series: e.tallies.series(k.cells),
	}
	made.Signs, made.Shared = k.looks()
	return made
}

// whatIf returns what other limits would have done, and the one in the config among them.
func (z *zoneTally) whatIf(made *replay.Zone, attempts []*attempt) []replay.WhatIf {
	rows := []replay.WhatIf{}
	add := func(row replay.WhatIf, refused map[string]int64) {
		for _, n := range refused {
			row.Refused += n
		}
		row.KeysRefused = len(refused)
		rows = append(rows, row)
	}
	for _, t := range attempts {
		if t.Zone == z.Name {
			_, seconds := window(&t.limit)
			add(replay.WhatIf{Limit: t.label(), Events: t.limit.MaxEvents.Number, Window: seconds, Curve: t.curve}, t.refused)
		}
	}
	if len(rows) == 0 {
		return rows
	}
	configured, refused := labelOf(&z.Limit), make(map[string]int64)
	for _, k := range z.keys {
		if k.refused > 0 {
			refused[k.key] = k.refused
		}
	}
	rows = slices.DeleteFunc(rows, func(w replay.WhatIf) bool { return w.Limit == configured })
	add(replay.WhatIf{Limit: configured, Events: made.Events, Window: made.Window, Configured: true}, refused)
	rows[len(rows)-1].Refused = made.Refused // also of keys for which there is no room
	slices.SortStableFunc(rows, func(a, b replay.WhatIf) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.Events, b.Events))
	})
	return slices.CompactFunc(rows, func(a, b replay.WhatIf) bool { return a.Limit == b.Limit })
}

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// shortKey returns the text of a key with placeholders as in the Caddyfile.
func shortKey(text string) string {
	return placeholders.ReplaceAllStringFunc(text, func(name string) string {
		return "{" + placeholder.Short(strings.Trim(name, "{}")) + "}"
	})
}
