package engine

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// engine replays logs once. Only one goroutine at a time uses it.
type engine struct {
	clock.Timeline
	config  *Config
	worlds  []*world // the first is the config as it is, unless only other limits are tried
	index   map[caddyhttp.MiddlewareHandler]int
	servers servers
	maker   maker
	tallies *tallies
	unknown *unknown
	needs   *needs
	judges  judges

	// separate says that each world needs a walk of its own: where requests can wait, and where error
	// routes decide too, because a request that one world refuses may pass in another.
	separate bool

	decided func(*logs.Record, int) // see [replay.Options]
}

func newEngine(c *Config, n *needs, t *tallies, trials []*trial) (*engine, error) {
	e := &engine{config: c, needs: n, judges: newJudges(c, n), maker: newMaker(c, n), index: make(map[caddyhttp.MiddlewareHandler]int), tallies: t, unknown: &unknown{handlers: make(map[string]string), redacted: make(map[string]int64)}}
	for i, h := range c.Handlers {
		e.index[h.Module] = i
		e.separate = e.separate || n.errors && len(trials) > 1 || slices.ContainsFunc(h.Zones, (*zone.Zone).Waits)
	}
	for _, try := range trials {
		w, err := newWorld(c, &e.Timeline, try)
		if err != nil {
			e.close()
			return nil, err
		}
		e.worlds = append(e.worlds, w)
	}
	var err error
	if e.servers.sites, err = sitesOf(c.JSON); err != nil {
		e.close()
		return nil, err
	}
	e.servers.app, e.servers.host = c.App, e.maker.host
	return e, nil
}

func (e *engine) close() {
	for _, w := range e.worlds {
		w.close()
	}
}

// run replays all requests of the logs.
func (e *engine) run(m *merged, o *replay.Options, tell func()) error {
	const tellEvery = 1 << 13
	from, to := bounds(o)
	for n := 1; ; n++ {
		r, s, err := m.next()
		if err != nil {
			return err
		}
		if r == nil {
			break
		}
		if n%tellEvery == 0 {
			tell()
		}
		if start := r.Start.UnixMicro(); from <= start && start < to {
			e.request(r, s)
		}
	}
	e.Finish()
	return nil
}

// bounds returns the times between which requests are replayed.
func bounds(o *replay.Options) (from, to int64) {
	from, to = -1<<63, 1<<63-1
	if !o.From.IsZero() {
		from = o.From.UnixMicro()
	}
	if !o.To.IsZero() {
		to = o.To.UnixMicro()
	}
	return from, to
}

// exchange is a request from when it comes until it is over in all worlds.
type exchange struct {
	engine *engine
	record *logs.Record
	source *source
	server *caddyhttp.Server
	client string // its address: as the server finds it out, or as it is in the log
	proxy  bool   // it came through a proxy that the server trusts
	end    int64  // when the request was over, by the log
	runs   []run
}

// run is the way of a request through the routes in one world.
type run struct {
	ended       bool // a zone has refused the request
	status      int  // of the refusal
	completions []*late.Completion
	slots       bool
}

func (e *engine) request(r *logs.Record, s *source) {
	start := r.Start.UnixMicro()
	if start < e.Micros() {
		e.unknown.late++
	}
	e.MoveTo(start)
	f := &exchange{engine: e, record: r, source: s, client: r.ClientIP, runs: make([]run, len(e.worlds))}
	f.end = max(e.Micros(), start+r.Duration.Microseconds())
	e.tallies.request(e.Micros())
	e.unknown.see(r)
	if f.server = e.servers.of(r); f.server == nil {
		e.unknown.servers++
		e.tallies.client(f)
		return
	}
	if e.separate {
		for i := range e.worlds {
			e.begin(f, i)
		}
	} else if request := e.maker.make(f); request != nil {
		e.walk(&visitor{engine: e, exchange: f, only: -1}, f, request)
		for i := range f.runs {
			e.complete(f, i)
		}
	} else {
		e.unknown.invalid++
	}
	e.tallies.client(f)
	e.unknown.proxies.see(f, e.maker.trusts[f.server])
	for _, w := range e.worlds {
		w.maintain(e.Micros())
	}
}

// walk sends a request through the routes.
func (e *engine) walk(v *visitor, f *exchange, request *caddyRequest) {
	if request.refused != nil {
		e.unknown.invalid++
		return
	}
	err := walk.Walk(v, f.server, request.Request)
	if answer := (caddyhttp.HandlerError{}); err != nil && v.failed == nil && !errors.As(err, &answer) {
		v.failed = err
	}
	if v.failed != nil {
		e.unknown.fail(v.failed)
		v.failed = nil
	}
}

// begin sends a request through the routes of one world, in which it may wait.
func (e *engine) begin(f *exchange, i int) {
	request := e.maker.make(f)
	if request == nil {
		e.unknown.invalid++
		return
	}
	e.Go(func() { e.walk(&visitor{engine: e, exchange: f, only: i}, f, request) }, func() { e.complete(f, i) })
}

// complete gives back what a request has, and judges charges by its response, when it is over.
func (e *engine) complete(f *exchange, i int) {
	r := &f.runs[i]
	if e.decided != nil && e.worlds[i].try == nil {
		e.decided(f.record, r.status)
	}
	if len(r.completions) == 0 {
		return
	}
	if r.ended {
		f.endCompletions(i, r.status)
		return
	}
	e.Plan(f.end, func() { f.endCompletions(i, f.record.Status) })
	if r.slots && f.end > e.Micros() {
		e.renew(e.worlds[i], f.end)
	}
}

// endCompletions ends the completions of a request whose response had a status.
func (f *exchange) endCompletions(i, status int) {
	r := &f.runs[i]
	header := f.responseHeader(status)
	for _, c := range r.completions {
		c.Judge(status, header)
		c.ReadCost(header)
		c.Release()
		c.End()
	}
	r.completions = nil
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

// acquire counts the slots of a key until the request is over.
func (f *exchange) acquire(k *keyTally, slots int64) {
	f.engine.Plan(f.end, func() { k.peak.release(slots) })
}

// responseHeader returns the header of the response in the log. A refusal has none of it.
func (f *exchange) responseHeader(status int) http.Header {
	if status != f.record.Status {
		return nil
	}
	return f.record.RespHeader
}
