// Package trial sends requests through the routes and zones of a config, and notes what they meet. Where their limits
// are counted is for who tries: explain looks into the stores of a running Caddy, test has stores of its own.
package trial

import (
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/respond"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// Handler is a rate limit handler of a config.
type Handler struct {
	Module    caddyhttp.MiddlewareHandler // in the routes
	Zones     []*zone.Zone
	Store     *pool.Ref
	Local     *pool.Ref // decides while the store does not; nil if no zone may need it
	Status    int
	Instances int                // by which limits are divided while the store is down; 0 for as many as there are
	Respond   *respond.Responder // as in production, but without anything random

	// Warnings are those while it was loaded, by zone; those of the whole handler have the name "".
	Warnings map[string][]string

	LogKey         bool              // log lines show keys
	Server         *caddyhttp.Server // that it is loaded for; nil if that is not known
	StoreByDefault bool              // the config names no store
	DisableMetrics bool              // of its zones and its store
}

// Find returns the handler of a module in the routes; nil if there is none.
func Find(all []*Handler, module caddyhttp.MiddlewareHandler) *Handler {
	for _, h := range all {
		if h.Module == module {
			return h
		}
	}
	return nil
}

// Trace is what a request has met on its way. It implements a part of [walk.Visitor], and [limiter.Witness].
type Trace struct {
	Find     func(caddyhttp.MiddlewareHandler) *Handler // finds a handler by its module; nil if it is none
	Detailed bool                                       // what happens is also noted in words

	Steps    []adminapi.Step
	Visits   []*Visit
	Handlers int // that have decided
	Wait     time.Duration

	// Refusal is the first one, and Refused says that there is one.
	Refusal limiter.Answer
	Refused bool

	handler *Handler      // that decides
	request *http.Request // as it came there
	first   int           // the first visit there
}

// Visit is what has happened in a zone.
type Visit struct {
	adminapi.Visit
	Use   *zone.Zone
	Found limiter.Entry  // what the zone has found out
	Asked *limiter.Entry // what was decided; nil if it has asked no store
}

// Meets implements [walk.Visitor].
func (t *Trace) Meets(s adminapi.Step) {
	if t.Detailed {
		t.Steps = append(t.Steps, s)
	}
}

// Answer implements [walk.Visitor].
func (*Trace) Answer(caddyhttp.MiddlewareHandler, http.ResponseWriter, *http.Request) error {
	return nil
}

// Decides implements [walk.Visitor].
func (t *Trace) Decides(module caddyhttp.MiddlewareHandler) bool { return t.Find(module) != nil }

// Here returns the visits at the handler that decides.
func (t *Trace) Here() []*Visit { return t.Visits[t.first:] }

// Try has a handler decide a request. The config has its zones, with counters of their own, and what decides instead of
// its stores.
func (t *Trace) Try(h *Handler, c limiter.Config, r *http.Request) *limiter.Verdict {
	t.handler, t.request, t.first = h, r, len(t.Visits)
	t.Handlers++
	c.Instances, c.Logger, c.Witness = h.Instances, zap.NewNop(), t
	began := c.Clock.Now()
	v := limiter.New(c).Decide(r)
	t.Wait += c.Clock.Now() - began
	if v.Err == nil && !v.Passes() && !t.Refused {
		t.Refused, t.Refusal = true, v.Answer(h.Status)
	}
	return v
}

// Met implements [limiter.Witness].
func (t *Trace) Met(e *limiter.Entry, met bool, err error) {
	z := e.Zone
	v := &Visit{Visit: adminapi.Visit{Zone: z.Name, Handler: t.Handlers, Met: met && err == nil}, Use: z, Found: *e}
	t.Visits = append(t.Visits, v)
	switch {
	case err != nil:
		v.Reason = err.Error()
	case met:
		v.DryRun = e.DryRun || z.IsDryRun(e.Key)
		t.unasks(v)
	}
	if t.Detailed && err == nil && !met {
		v.Misses = walk.Misses(z.Matchers, t.request, clientip.MatchAny)
	}
}

// Skips notes a zone that the request does not come to at this handler.
func (t *Trace) Skips(z *zone.Zone, why string) {
	t.Visits = append(t.Visits, &Visit{Visit: adminapi.Visit{Zone: z.Name, Handler: t.Handlers, Reason: why}, Use: z})
}

// unasks notes why a zone asks no store.
func (t *Trace) unasks(v *Visit) {
	z, c := v.Use, &v.Found
	decided := outcome.Exempt
	switch {
	case c.Rejection != nil && c.Network != nil:
		decided, v.Status, v.Reason = outcome.Banned, t.handler.Status, "its network "+c.Network.Prefix.String()+" is banned"
	case c.Rejection != nil:
		decided, v.Status, v.Reason = outcome.Rejected, c.Status, c.Rejection.Error()
		if c.Invalid != nil {
			v.Reason += ": " + c.Invalid.Error()
		} else if hit := walk.Hit(z.Block, t.request, clientip.MatchAny); hit != "" {
			v.Reason = "its option block matches: " + hit
		}
	case c.Policy != nil:
		return
	case c.Network != nil:
		v.Reason = "its network " + c.Network.Prefix.String() + " is exempt"
	default:
		v.Reason = "its plan has no limit"
		if hit := walk.Hit(z.Exempt, t.request, clientip.MatchAny); hit != "" {
			v.Reason = "its option exempt matches: " + hit
		} else if z.MissingKey.Word == config.MissingSkip && c.Key == z.Template.Empty {
			v.Reason = "the request has no key (missing_key skip)"
		}
	}
	if c.Rejection != nil && c.DryRun {
		decided = outcome.DryRun
	}
	v.Outcome = outcome.Names[decided]
}

// Decided implements [limiter.Witness].
func (t *Trace) Decided(e *limiter.Entry) {
	v, asked := t.Visit(e.Zone.Name), *e
	v.Outcome, v.Asked = outcome.Names[e.Outcome], &asked
}

// Visit returns the last visit in a zone; nil if there is none.
func (t *Trace) Visit(zone string) *Visit {
	for _, v := range slices.Backward(t.Visits) {
		if v.Zone == zone {
			return v
		}
	}
	return nil
}
