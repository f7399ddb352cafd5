// Package respond shows the decision on a request to the client, handlers behind, error routes,
// and access log: headers, placeholders, the answer of a refusal.
package respond

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Config configures a Responder.
type Config struct {
	Zones   []*zone.Zone
	Fields  Fields
	Jitter  float64        // how much is added to Retry-After at random, as a fraction of it
	Status  int            // of a refusal by a limit
	Problem bool           // refusals have a JSON problem as their body, but for callers of gRPC
	Around  *routes.Routes // of the server
}

// Responder responds to requests that a Limiter has decided. Its methods may be called from many
// goroutines at once.
type Responder struct {
	Config
	policies string            // RateLimit-Policy if a request meets all zones; empty if it depends on the request
	hides    bool              // a zone is hidden
	caught   bool              // a subroute around the handler has routes for errors
	server   *caddyhttp.Server // of the handler; nil if it is not known
}

// New returns a Responder for a handler that is provisioned in ctx.
func New(ctx caddy.Context, c Config) *Responder {
	p := &Responder{Config: c, caught: caughtBySubroute(ctx), hides: slices.ContainsFunc(c.Zones, (*zone.Zone).Hidden)}
	p.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if slices.ContainsFunc(c.Zones, func(z *zone.Zone) bool { return z.Policy == nil || z.Overrides || z.Enforce != nil }) {
		return p // the limits of requests that met all zones may differ
	}
	for _, z := range c.Zones {
		if isShown(z) {
			p.policies = appendPolicy(p.policies, z.Policy.PolicyItem)
		}
	}
	return p
}

// serverOf returns the server that a request came to, or nil.
func (p *Responder) serverOf(r *http.Request) *caddyhttp.Server {
	if p.server != nil {
		return p.server // without a search through the request's context
	}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	return server
}

// Begin records the verdict and sets the headers of the response. If the request ends here,
// Begin writes the answer or returns an error for error routes, and through is nil. If not, the
// handlers behind must write to through.
func (p *Responder) Begin(w http.ResponseWriter, r *http.Request, v *limiter.Verdict) (through http.ResponseWriter, err error) {
	p.Note(v)
	for i := range v.Rejections {
		p.recordOf(v, new(record)).note(&v.Rejections[i], 0)
	}
	if v.Err != nil {
		return nil, v.Err
	}
	if !v.Passes() {
		return nil, p.refuse(w, r, v)
	}
	switch {
	case v.Outcome == outcome.FailedOpen:
		p.recordOf(v, new(record)).outcome = v.Outcome
		return w, nil
	case len(v.Entries) == 0 || v.Binding == nil && p.unseen(v):
		return w, nil
	}
	t := p.recordOf(v, new(record))
	p.recordDecision(t, w, v, 0)
	if v.Binding != nil && t.by() != nil && t.policy != nil {
		w = t.wrap(w)
	}
	return w, nil
}

// recordDecision records what the limits have decided, and sets the headers, with the seconds of Retry-After.
func (p *Responder) recordDecision(t *record, w http.ResponseWriter, v *limiter.Verdict, retryAfter int64) {
	if e := v.MostBinding(func(e *limiter.Entry) bool { return e.DryRun }); e != nil {
		t.note(e, 0)
	}
	if v.Binding != nil {
		p.setHeaders(w, t, v, retryAfter)
	}
}

// retryAfter returns the value of Retry-After for a wait: whole seconds, rounded up, with jitter. It is 0 without a wait.
func (p *Responder) retryAfter(wait time.Duration) int64 {
	if wait > 0 && p.Jitter > 0 {
		wait += time.Duration(rand.Float64() * p.Jitter * float64(wait))
	}
	return zone.CeilSeconds(wait)
}

// Serve calls the next handlers for a request that may pass: see [late.Completion.Serve].
func (p *Responder) Serve(c *late.Completion, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	err := c.Serve(w, r, next, p)
	if err != nil && p.ErrorRoutes(r) {
		p.keepFields(r) // error routes respond, which may be a proxy to another upstream
	}
	return err
}
