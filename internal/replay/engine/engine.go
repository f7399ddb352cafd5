// Package engine sends the requests of logs through the routes of configs, and decides them on the time of the logs
// as Caddy would.
//
// One loop does in order what a Caddy does at the same time: requests begin, wait (in coroutines) and end.
// Limits that are tried have a store and zones of their own beside those of the config, a world. Worlds share
// the walk where no request can wait. A zone whose key, plan or matcher looks at what the log does not have
// of a request does not match it.
package engine

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// Replay says what a config, which does not run, would have done to the requests of some logs.
func Replay(config []byte, o *replay.Options) (*replay.Result, error) {
	c, err := offline.Provision(config)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	if len(c.Handlers) == 0 {
		return nil, errors.New("the config has no rate_limit handlers")
	}
	zones := zonesOf(c)
	if o.Zone != "" && zones[o.Zone] == nil {
		_, err := newTrial(zones, replay.Try{Zone: o.Zone})
		return nil, err
	}
	worlds := []*trial{nil}
	for _, try := range o.Tries {
		made, err := newTrial(zones, try)
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, made)
	}
	twice := o.Suggest || o.Curve
	if twice && slices.Contains(o.Logs, "-") {
		return nil, errors.New("--suggest and --html read the logs twice, and the standard input can be read once: name a file instead of -")
	}
	began := time.Now()
	first, m, err := pass(c, o, worlds)
	if err != nil {
		return nil, err
	}
	result, sizings := first.result(m), first.reported(o)
	if twice {
		var more []*trial
		for _, s := range sizings {
			more = append(more, s.trials(o, first.tallies, len(sizings))...)
		}
		again := *o
		if again.Decided = nil; len(more) > 0 {
			_, _, err = pass(c, &again, more)
		}
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, more...)
	}
	for _, s := range sizings {
		made := first.report(s.zone, worlds[1:])
		if o.Suggest {
			s.suggest(made, first.tallies)
		}
		result.Zones = append(result.Zones, made)
	}
	result.Took = time.Since(began)
	return result, nil
}

// pass replays the logs once, in the worlds of some trials. A trial that is nil is the config as it is.
func pass(c *offline.Config, o *replay.Options, trials []*trial) (*engine, *merged, error) {
	e, err := newEngine(c, o, trials)
	if err != nil {
		return nil, nil, err
	}
	defer e.close()
	m, err := read(o, e)
	return e, m, err
}

// engine replays logs once under a config. Only one goroutine at a time uses it.
type engine struct {
	clock.Timeline
	servers
	config   *offline.Config
	needs    *needs
	worlds   []*world // the first is the config as it is, unless only other limits are tried
	index    map[caddyhttp.MiddlewareHandler]int
	trusts   map[*caddyhttp.Server]bool // the server trusts proxies
	tallies  *tallies
	unknown  *unknown
	deciding *exchange

	// separate says that each world needs a walk of its own: where requests can wait, and where error
	// routes decide too, because a request that one world refuses may pass in another.
	separate bool

	compares bool
	decided  func(x *exchange, at *way) // is called when a request is decided in the config as it is; may be nil
}

// newEngine returns an engine, which the caller must close.
func newEngine(c *offline.Config, o *replay.Options, trials []*trial) (*engine, error) {
	n := needsOf(c)
	e := &engine{
		config: c, needs: n, servers: newServers(c, n.host()), index: make(map[caddyhttp.MiddlewareHandler]int), trusts: make(map[*caddyhttp.Server]bool),
		tallies: newTallies(c, n.maxKeys), unknown: &unknown{handlers: make(map[string]string), redacted: make(map[string]int64)},
	}
	if o.Decided != nil {
		e.decided = func(x *exchange, at *way) { o.Decided(&x.Record, at.status) }
	}
	for i, h := range c.Handlers {
		e.index[h.Module] = i
		e.separate = e.separate || n.errors && len(trials) > 1 || slices.ContainsFunc(h.Zones, (*zone.Zone).Waits)
	}
	for _, server := range c.App.Servers {
		source := clientip.SourceOf(server)
		e.trusts[server] = len(source.Trusted) > 0 || source.TrustsSockets
	}
	for _, try := range trials {
		w, err := e.newWorld(try)
		if err != nil {
			e.close()
			return nil, err
		}
		e.worlds = append(e.worlds, w)
	}
	return e, nil
}

func (e *engine) close() {
	for _, w := range e.worlds {
		_ = w.ref.Release()
	}
}

// read reads the logs, and has engines replay all requests.
func read(o *replay.Options, engines ...*engine) (*merged, error) {
	m, err := openAll(o, readOptions(o, engines))
	if err != nil {
		return nil, err
	}
	defer m.close()
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !o.From.IsZero() {
		from = o.From.UnixMicro()
	}
	if !o.To.IsZero() {
		to = o.To.UnixMicro()
	}
	for {
		next, err := m.next()
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		for _, e := range engines {
			if from <= next.start && next.start < to {
				e.request(next)
			}
		}
	}
	for _, e := range engines {
		e.Finish()
	}
	return m, nil
}

// request replays a request.
func (e *engine) request(next *held) {
	if next.start < e.Micros() {
		e.unknown.late++
	}
	e.MoveTo(next.start)
	e.tallies.request(e.Micros())
	e.unknown.see(&next.Record)
	x := &exchange{engine: e, held: next, client: next.ClientIP, server: e.servers.of(&next.Record)}
	x.end = max(e.Micros(), next.start+next.Duration.Microseconds())
	switch {
	case x.server == nil:
		e.unknown.servers++
	case !e.separate:
		x.send(e.worlds)
	default:
		for i := range e.worlds {
			own := *x
			own.send(e.worlds[i : i+1])
			x.client, x.proxy = own.client, own.proxy
		}
	}
	e.tallies.client(x)
	if x.server != nil {
		e.unknown.proxies.see(x)
	}
	for _, w := range e.worlds {
		w.maintain(e.Micros())
	}
}

// renew renews leases while requests hold them.
func (e *engine) renew(w *world, until int64) {
	const every = int64(150 * time.Millisecond / time.Microsecond) // less than a sixth of the shortest lease
	w.renewUntil = max(w.renewUntil, until)
	if w.renewing || e.Micros()+every >= w.renewUntil {
		return
	}
	w.renewing = true
	e.Plan(e.Micros()+every, func() {
		w.store.Renew()
		w.renewing = false
		e.renew(w, w.renewUntil)
	})
}

// zonesOf returns the zones of a config by name. Zones of one name are alike, but for their matchers.
func zonesOf(c *offline.Config) map[string]*zone.Zone {
	zones := make(map[string]*zone.Zone)
	for _, h := range c.Handlers {
		for _, z := range h.Zones {
			zones[z.Name] = z
		}
	}
	return zones
}

// readOptions returns what some engines have to read of the logs.
func readOptions(o *replay.Options, engines []*engine) logs.Options {
	var request, response []string
	opaque := false
	for _, e := range engines {
		names, ofResponse := e.needs.fields(e.config.App)
		request, response, opaque = append(request, names...), append(response, ofResponse...), opaque || e.needs.opaque
	}
	slices.Sort(request)
	want := logs.Options{Format: o.Format, LogFormat: o.LogFormat, Header: slices.Compact(request), RespHeader: append([]string{}, response...)}
	if opaque {
		want.Header = nil
	}
	return want
}
