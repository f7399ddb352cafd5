package engine

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/incoming"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// exchange is one request on its way, and what has come of it. It implements [walk.ServingVisitor] and
// [limiter.Witness].
type exchange struct {
	world    *world
	on       *instance
	request  *cases.Request
	url      string // the whole one
	at       int64  // when it came, in microseconds since 1970
	response recorder
	current  *http.Request // at the handler that decides

	refused bool
	by      string // the zone that has refused it
	outcome outcome.Outcome
	waited  time.Duration
	zones   []visit
	assumed []string // about handlers that were not run
	err     error    // why the request could not be sent, or served
}

// visit is what has happened in a zone.
type visit struct {
	zone     *zone.Zone
	met      bool
	dryRun   bool
	key      string
	outcome  outcome.Outcome
	decision *algorithms.Decision
	limit    string
	reason   string // in words; only in detailed worlds
}

// send sends a request. It returns when the request is over, or waits.
func (w *world) send(r *cases.Request) *exchange {
	x := &exchange{world: w, request: r, at: w.Micros(), url: r.URL}
	if strings.HasPrefix(r.URL, "/") {
		if x.url = w.base + r.URL; w.base == "" {
			x.err = errors.New(w.noBase)
			return x
		}
	}
	if x.on, x.err = w.instance(r.Instance); x.err != nil {
		return x
	}
	made, err := incoming.Make(w.config.App, &adminapi.Request{
		Method: r.Method, URL: x.url, Header: slices.Clone(r.Header), Body: r.Body, From: r.From, Server: r.Server, Assume: r.Assume,
	}, &x.response)
	if err != nil {
		x.err = err
		return x
	}
	w.Go(func() { x.serve(made) }, func() { x.response.WriteHeader(http.StatusOK) })
	return x
}

// serve serves the request as its server would.
func (x *exchange) serve(made *incoming.Request) {
	err := made.Refused
	if err == nil {
		err = walk.Serve(x, made.Server, &x.response, made.Request)
	}
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	if failed := (caddyhttp.HandlerError{}); errors.As(err, &failed) {
		status = failed.StatusCode
	} else {
		x.err = err
	}
	x.response.WriteHeader(status)
}

// Handler implements [walk.Visitor].
func (x *exchange) Handler(h walk.Handler) {
	if h.Effect == walk.Assumed && x.world.detailed {
		x.assumed = append(x.assumed, h.Name+" "+h.Note)
	}
}

// Decides implements [walk.Visitor].
func (x *exchange) Decides(h caddyhttp.MiddlewareHandler) bool {
	_, ok := x.world.index[h]
	return ok
}

// Decide implements [walk.Visitor]. Serve takes its place.
func (x *exchange) Decide(caddyhttp.MiddlewareHandler, *http.Request) (passes bool, err error) {
	return true, nil
}

// Serve implements [walk.ServingVisitor]. It does what the handler does in production.
func (x *exchange) Serve(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	nth := x.world.index[module]
	x.current = r
	handler, began := &x.world.config.Handlers[nth], x.world.Now()
	v := x.world.limiter(nth, x.on, x).Decide(r)
	x.waited += x.world.Now() - began
	if v.Err == nil && !v.Passes() && !x.refused {
		a := v.Answer(handler.Status)
		x.refused, x.outcome = true, a.Outcome
		if a.Zone != nil {
			x.by = a.Zone.Name
		}
	}
	through, err := handler.Respond.Begin(rw, r, v)
	completion := v.Release()
	if through == nil || err != nil {
		return err
	}
	return handler.Respond.Serve(completion, through, r, next)
}

// Answer implements [walk.ServingVisitor]: the case answers in place of an upstream.
func (x *exchange) Answer(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request) error {
	x.world.hold(x.request.Takes)
	_, _ = io.Copy(io.Discard, r.Body) // as an upstream does
	answer := x.request.Answer
	if written, ok := module.(*caddyhttp.StaticResponse); ok && answer == nil {
		return written.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil }))
	}
	if answer == nil {
		return nil
	}
	for name, values := range answer.Header {
		for _, value := range values {
			rw.Header().Add(name, value)
		}
	}
	rw.WriteHeader(answer.Status)
	if len(answer.Body) > 0 {
		_, err := rw.Write(answer.Body)
		return err
	}
	return nil
}

// Met implements [limiter.Witness].
func (x *exchange) Met(z *zone.Zone, c zone.Check, met bool, err error) {
	v := visit{zone: z, met: met && err == nil, key: c.Key}
	if v.met {
		v.dryRun = c.DryRun || z.IsDryRun(c.Key)
		switch {
		case c.Rejection != nil && c.DryRun:
			v.outcome, v.reason = outcome.DryRun, c.Rejection.Error()
		case c.Rejection != nil:
			v.outcome, v.reason = outcome.Rejected, c.Rejection.Error()
		case c.Policy == nil:
			v.outcome = outcome.Exempt
		}
	}
	switch {
	case !x.world.detailed:
	case err != nil:
		v.reason = err.Error()
	case !met:
		v.reason = strings.Join(walk.Misses(z.Matchers, x.current, clientip.MatchAny), " and ")
	}
	x.zones = append(x.zones, v)
}

// Decided implements [limiter.Witness].
func (x *exchange) Decided(e *limiter.Entry, c *store.Check, d *algorithms.Decision) {
	for i := range slices.Backward(x.zones) {
		v := &x.zones[i]
		if v.zone == e.Zone {
			decision := *d
			v.outcome, v.decision, v.key = e.Outcome, &decision, c.Key
			if e.Outcome == outcome.FailedOpen || e.Outcome == outcome.FailedClosed {
				v.decision = nil // nobody has counted, so there are no numbers
			}
			if x.world.detailed {
				v.limit = x.world.config.Describe(c.Rule)
			}
			return
		}
	}
}

// recorder is the response of a request.
type recorder struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements [http.ResponseWriter].
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status, w.sent = status, w.Header().Clone()
	}
}

// Write implements [http.ResponseWriter].
func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
