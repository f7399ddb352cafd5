// Package engine sends the requests of logs through the routes of configs, and decides them on the time of the logs
// as Caddy would.
//
// One loop does in order what a Caddy does at the same time: requests begin, wait (in coroutines) and end.
// The config has an engine with a store and zones, and each tried limit has another one. All share the walk of a request
// through the routes, unless it may differ. A zone does not match a request if the log lacks a field of its key, plan or
// matchers.
package engine

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Replay says what a config, which does not run, would have done to the requests of some logs.
func Replay(config []byte, o *replay.Options) (*replay.Result, error) {
	began := time.Now()
	c, err := offline.Provision(config)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	if len(c.Handlers) == 0 {
		return nil, errors.New("the config has no rate_limit handlers")
	}
	attempts := []*attempt{nil}
	for _, try := range o.Tries {
		made, err := newAttempt(c.Zones, try)
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, made)
	}
	twice := o.Suggest || o.Curve
	if twice && slices.Contains(o.Logs, "-") {
		return nil, errors.New("--suggest and --html read the logs twice, and the standard input can be read once: name a file instead of -")
	}
	s := newSetup(c)
	first, m, err := s.pass(o, attempts)
	if err != nil {
		return nil, err
	}
	result, names := first.result(m), slices.Sorted(maps.Keys(c.Zones))
	if twice {
		var more []*attempt
		for _, name := range names {
			more = append(more, first.tallies.zones[name].suggest(o, len(names))...)
		}
		if len(more) > 0 {
			if _, _, err = s.pass(o, more); err != nil {
				return nil, err
			}
		}
		attempts = append(attempts, more...)
	}
	for _, name := range names {
		result.Zones = append(result.Zones, first.report(first.tallies.zones[name], attempts[1:]))
	}
	result.Took = time.Since(began)
	return result, nil
}

// setup is what all engines of a config share.
type setup struct {
	config  *offline.Config
	servers []*server
	host    string // of requests whose log has none
	needs   *needs
	waits   bool // requests can wait
}

func newSetup(c *offline.Config) *setup {
	s := &setup{config: c, needs: needsOf(c)}
	s.servers, s.host = serversOf(c)
	for _, h := range c.Handlers {
		s.waits = s.waits || slices.ContainsFunc(h.Zones, (*zone.Zone).Waits)
	}
	return s
}

// pass replays the logs for all attempts, and returns the engine of the first one. One that is nil is the config as it is.
// Each needs a walk of its own where requests can wait, and where error routes decide about those that a limit refuses.
func (s *setup) pass(o *replay.Options, attempts []*attempt) (*engine, *merged, error) {
	var engines []*engine
	for _, try := range attempts {
		e, err := s.newEngine(try)
		if err != nil {
			return nil, nil, err
		}
		engines = append(engines, e)
	}
	together := len(engines)
	if s.waits || s.needs.inner {
		together = 1
	}
	m, err := read(o, slices.Collect(slices.Chunk(engines, together))...)
	return engines[0], m, err
}

// engine replays logs once under a config, with one limit instead of that in the config, or with the config as it is. Only one goroutine
// at a time uses it.
type engine struct {
	clock.Timeline
	*setup
	try      *attempt // nil for the config as it is
	limiters map[*trial.Handler]*limiter.Limiter
	store    *trial.Store
	tallies  *tallies
	unknown  *unknown
	decided  func(w *way) // is called when a request is decided; may be nil

	since int // requests since the beginning
}

func (s *setup) newEngine(try *attempt) (*engine, error) {
	e := &engine{
		setup: s, try: try, limiters: make(map[*trial.Handler]*limiter.Limiter),
		tallies: newTallies(s.config, s.needs.maxKeys), unknown: &unknown{handlers: make(map[string]string)},
	}
	made, ref, err := trial.NewStore(&e.Timeline, s.needs.maxKeys)
	if err != nil {
		return nil, err
	}
	e.store = made
	for _, h := range s.config.Handlers {
		zones := make([]*zone.Zone, len(h.Zones))
		for i, z := range h.Zones {
			if zones[i], err = e.own(z); err != nil {
				return nil, err
			}
		}
		e.limiters[h] = limiter.New(limiter.Config{Zones: zones, Store: ref, Logger: zap.NewNop(), Clock: &e.Timeline})
	}
	return e, nil
}

// own returns a zone with counters of its own, and its guard.
func (e *engine) own(z *zone.Zone) (*zone.Zone, error) {
	guarded, err := z.Copy()
	if err != nil {
		return nil, err
	}
	guarded.Matchers = e.needs.guarded(z)
	if e.try != nil && e.try.zone == z.Name {
		return guarded.With(e.try.limit)
	}
	made, err := guarded.Copy() // which looks at its guard
	if tally := e.tallies.zones[z.Name]; err == nil {
		tally.stats = append(tally.stats, made.Stats)
	}
	return made, err
}

// read reads the logs, and has engines replay all requests. Those of a group share the walk of a request.
func read(o *replay.Options, groups ...[]*engine) (*merged, error) {
	responses := slices.ContainsFunc(groups, func(engines []*engine) bool { return engines[0].needs.responses })
	m, err := openAll(o, logs.Options{Format: o.Format, LogFormat: o.LogFormat, Requests: !responses})
	if err != nil {
		return nil, err
	}
	defer m.close()
	err = m.each(func(next *held) {
		for _, engines := range groups {
			request(next, engines)
		}
	})
	for _, e := range slices.Concat(groups...) {
		e.Finish()
	}
	return m, err
}

// request replays a request in some engines of a config.
func request(next *held, engines []*engine) {
	first := engines[0]
	if next.start < first.Micros() {
		first.unknown.late++
	}
	x := &exchange{held: next, setup: first.setup, client: next.ClientIP, server: first.serverOf(&next.Record), person: personIn(&next.Record)}
	for _, e := range engines {
		e.MoveTo(next.start)
		if e.since++; e.since%sweepEvery == 0 {
			e.store.Sweep()
		}
		x.ways = append(x.ways, way{exchange: x, engine: e, end: max(e.Micros(), next.start+next.Duration.Microseconds())})
	}
	if r := x.make(); r == nil {
		first.unknown.invalid++
	} else if first.waits {
		first.Go(func() { x.walk(r) }, x.over)
	} else { // a coroutine for each request would take half as long again
		x.walk(r)
		x.over()
	}
	if first.try == nil {
		first.tallies.request(x, first.Micros())
		first.unknown.proxies.see(x)
		if x.Status == http.StatusTooManyRequests {
			first.unknown.before++
		}
	}
}

// sweepEvery is after how many requests the store is swept, which does not do so by itself on a clock of its own.
const sweepEvery = 1 << 15
