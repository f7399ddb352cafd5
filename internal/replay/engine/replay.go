package engine

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Replay replays logs under a config.
func Replay(c *Config, o *replay.Options) (*replay.Result, error) {
	zones := c.zones()
	if o.Zone != "" && zones[o.Zone] == nil {
		_, err := newTrial(zones, replay.Try{Zone: o.Zone})
		return nil, err
	}
	var trials []*trial
	for _, try := range o.Tries {
		made, err := newTrial(zones, try)
		if err != nil {
			return nil, err
		}
		trials = append(trials, made)
	}
	n, err := needsOf(c.JSON)
	if err != nil {
		return nil, err
	}
	c.MaxKeys = cmp.Or(c.MaxKeys, n.max)
	passes := 1
	if o.Suggest || o.Curve {
		passes = 2
		if slices.Contains(o.Logs, "-") {
			return nil, errors.New("--suggest and --html read the logs twice, and the standard input can be read once: name a file instead of -")
		}
	}
	first, err := newPass(c, n, o, append([]*trial{nil}, trials...), 1, passes)
	if err != nil {
		return nil, err
	}
	r := first.result()
	var plans []*sizing
	if passes == 2 {
		var more []*trial
		plans, more = first.plan(o)
		again := *o
		again.Decided = nil
		second, err := newPass(c, n, &again, more, 2, passes)
		if err != nil {
			return nil, err
		}
		trials, r.Took = append(trials, more...), r.Took+second.took
	}
	for _, z := range first.reported(o) {
		made := first.zone(z, trials)
		for _, s := range plans {
			if s.zone == z && o.Suggest {
				s.suggest(made, first.tallies.span())
			}
		}
		r.Zones = append(r.Zones, made)
	}
	return r, nil
}

// pass is one reading of the logs.
type pass struct {
	*engine
	merged *merged
	took   time.Duration
}

// newPass replays the logs once, in the worlds of some trials. A trial that is nil is the config as it
// is.
func newPass(c *Config, n *needs, o *replay.Options, trials []*trial, nth, of int) (*pass, error) {
	began := time.Now()
	m, err := openAll(o, n.readOptions(c, o))
	if err != nil {
		return nil, err
	}
	defer m.close()
	e, err := newEngine(c, n, newTallies(c), trials)
	if err != nil {
		return nil, err
	}
	defer e.close()
	e.decided = o.Decided
	tell := func() {
		if o.Progress != nil {
			o.Progress(replay.Progress{Lines: m.lines(), Bytes: m.bytes(), Total: m.total, Took: time.Since(began), Pass: nth, Of: of})
		}
	}
	if err := e.run(m, o, tell); err != nil {
		return nil, err
	}
	return &pass{e, m, time.Since(began)}, nil
}

// result returns what was read, without zones.
func (p *pass) result() *replay.Result {
	t := p.tallies
	r := &replay.Result{
		Requests: t.requests, Clients: len(t.clients), Bytes: p.merged.bytes(), Took: p.took,
		Unknown: p.unknown.list(p.engine, p.merged.formats()), Zones: []*replay.Zone{},
	}
	if t.requests > 0 {
		r.From, r.To = time.UnixMicro(t.from).UTC(), time.UnixMicro(t.to).UTC()
	}
	for name, n := range t.hosts {
		r.Hosts = append(r.Hosts, replay.Host{Name: name, Requests: n})
	}
	slices.SortFunc(r.Hosts, func(a, b replay.Host) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	r.Hosts = r.Hosts[:min(len(r.Hosts), maxHosts)]
	p.merged.sum(r)
	return r
}

// reported returns the zones that are reported, by name.
func (p *pass) reported(o *replay.Options) (zones []*zoneTally) {
	for _, name := range slices.Sorted(maps.Keys(p.tallies.zones)) {
		if o.Zone == "" || o.Zone == name {
			zones = append(zones, p.tallies.zones[name])
		}
	}
	return zones
}

// readOptions returns what to read of the logs.
func (n *needs) readOptions(c *Config, o *replay.Options) logs.Options {
	var clientIP []string
	for _, server := range c.App.Servers {
		for _, name := range server.ClientIPHeaders {
			clientIP = append(clientIP, http.CanonicalHeaderKey(name))
		}
	}
	request, response := n.fields(clientIP)
	return logs.Options{Format: o.Format, LogFormat: o.LogFormat, Header: request, RespHeader: response}
}

// formats returns the formats of the logs.
func (m *merged) formats() (all []*logs.Format) {
	for _, s := range m.sources {
		all = append(all, s.reader.Format())
	}
	return all
}

// sum adds what was read.
func (m *merged) sum(r *replay.Result) {
	for _, s := range m.sources {
		bad, first := s.reader.NotUnderstood()
		r.Lines, r.NotUnderstood = r.Lines+s.reader.Lines(), r.NotUnderstood+bad
		r.NoRequests += s.reader.NoRequests()
		if r.FirstBad == nil {
			r.FirstBad = first
		}
		r.Logs = append(r.Logs, replay.Log{Name: s.name, Format: s.reader.Format().Name, Lines: s.reader.Lines()})
	}
}

func (m *merged) lines() (n int64) {
	for _, s := range m.sources {
		n += s.reader.Lines()
	}
	return n
}

const (
	maxTop   = 20
	maxHosts = 20
	maxNamed = 1000 // peaks whose keys are named
)

// zone returns what a zone has done.
func (p *pass) zone(z *zoneTally, trials []*trial) *replay.Zone {
	t := p.tallies
	made := &replay.Zone{
		Name: z.name, Limit: z.zone.Description, Key: shortKey(z.zone.Key), DryRun: z.zone.Rollout() != "",
		Keys: len(z.keys), Refused: z.refused, Outcomes: make(map[string]int64), Top: []*replay.Key{}, WhatIf: []replay.WhatIf{},
	}
	made.NotJudged, made.WhyNotJudged = z.notJudged, z.why
	if p := z.zone.OwnPolicies.Fixed; p != nil {
		made.Events = p.Numbers.Events
		switch p.Rule.Algorithm().(type) {
		case algorithms.TokenBucket, algorithms.LeakyBucket:
			made.Burst = cmp.Or(p.Numbers.Burst, p.Numbers.Events)
		}
	}
	if !z.slots {
		made.Window = (time.Duration(z.window) * time.Microsecond).Seconds()
	}
	z.outcomes[outcome.Exempt] = exempt(p.worlds[0], z.name)
	for o, n := range z.outcomes {
		if made.Requests += n; n > 0 {
			made.Outcomes[outcome.Names[o]] = n
		}
	}
	if z.refused > 0 {
		first := time.UnixMicro(z.first).UTC()
		made.FirstRefused = &first
	}
	last := 0
	if t.set {
		last = t.index(t.to)
	}
	made.Series = z.cells.series(&t.calendar, last)
	all := slices.Collect(maps.Values(z.keys))
	slices.SortFunc(all, func(a, b *keyTally) int {
		return cmp.Or(cmp.Compare(b.refused(), a.refused()), cmp.Compare(b.peak.most, a.peak.most), cmp.Compare(a.key, b.key))
	})
	for i, k := range all {
		if k.refusals == nil {
			break
		}
		if made.KeysRefused++; i < maxTop {
			made.Top = append(made.Top, k.result(t, last))
		}
	}
	slices.SortFunc(all, func(a, b *keyTally) int {
		return cmp.Or(cmp.Compare(b.peak.most, a.peak.most), cmp.Compare(a.key, b.key))
	})
	for i, k := range all {
		made.Peaks = append(made.Peaks, k.peak.most)
		if i < maxNamed {
			made.PeakKeys = append(made.PeakKeys, k.key)
		}
		if k.refusals == nil && made.Busiest == nil && k.peak.most > 0 {
			made.Busiest = &replay.Peak{Key: k.key, Used: k.peak.most}
		}
	}
	made.WhatIf = z.whatIf(made, trials)
	return made
}

func (k *keyTally) refused() int64 {
	if k.refusals == nil {
		return 0
	}
	return k.refusals.refused
}

// result returns what has happened to a key that was refused.
func (k *keyTally) result(t *tallies, last int) *replay.Key {
	r := k.refusals
	made := &replay.Key{
		Key: k.key, Requests: k.requests, Refused: r.refused, FirstRefused: time.UnixMicro(r.first).UTC(), Peak: k.peak.most,
		Status: r.status, Agent: r.agent,
		Series: r.cells.series(&t.calendar, last),
	}
	made.Signs, made.Shared = k.person.signs(t.span())
	return made
}

// whatIf returns what other limits would have done, and the one in the config among them.
func (z *zoneTally) whatIf(made *replay.Zone, trials []*trial) []replay.WhatIf {
	rows := []replay.WhatIf{}
	for _, t := range trials {
		if t.Zone != z.name {
			continue
		}
		row := replay.WhatIf{Limit: t.label(), Events: t.limit.MaxEvents.Number, Window: t.window(), KeysRefused: len(t.tally), Curve: t.curve}
		for _, n := range t.tally {
			row.Refused += n
		}
		row.Largest, row.Users = z.largest(t.tally)
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return rows
	}
	configured := replay.WhatIf{
		Limit: labelOf(&z.zone.Limit), Events: made.Events, Window: made.Window, Refused: made.Refused, KeysRefused: made.KeysRefused, Configured: true,
	}
	tally := make(refusals)
	for _, k := range z.keys {
		if k.refusals != nil {
			tally[k.key] = k.refusals.refused
		}
	}
	configured.Largest, configured.Users = z.largest(tally)
	rows = append(rows, configured)
	rows = slices.DeleteFunc(rows, func(w replay.WhatIf) bool { return !w.Configured && w.Limit == configured.Limit })
	slices.SortStableFunc(rows, func(a, b replay.WhatIf) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.Events, b.Events))
	})
	return slices.CompactFunc(rows, func(a, b replay.WhatIf) bool { return a.Limit == b.Limit })
}

const maxLargest = 10

// largest returns how many of the keys that are refused most have a user.
func (z *zoneTally) largest(r refusals) (n, users int) {
	keys := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) })
	keys = keys[:min(len(keys), maxLargest)]
	for _, key := range keys {
		if k := z.keys[key]; k != nil && k.person.user {
			users++
		}
	}
	return len(keys), users
}

// exempt returns how many requests a zone has exempted, which only its counters tell.
func exempt(w *world, name string) (n int64) {
	for _, zones := range w.zones {
		for _, z := range zones {
			if z.Name == name {
				return int64(z.Stats.Totals()[outcome.Exempt])
			}
		}
	}
	return 0
}

// windowOf returns the window over which the peaks of a zone's keys are counted; 0 if it depends on
// the request.
func windowOf(z *zone.Zone) time.Duration {
	p := z.OwnPolicies.Fixed
	if p == nil || p.Slots {
		return 0
	}
	return p.Numbers.Window.Length()
}

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// shortKey returns the text of a key with placeholders as in the Caddyfile.
func shortKey(text string) string {
	return placeholders.ReplaceAllStringFunc(text, func(name string) string {
		return "{" + placeholder.Short(strings.Trim(name, "{}")) + "}"
	})
}
