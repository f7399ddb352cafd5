package explain

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// decide decides at a handler.
func (x *explainer) decide(module caddyhttp.MiddlewareHandler, r *http.Request) (passes bool, err error) {
	h := x.Find(module)
	zones := make([]*zone.Zone, len(h.Zones))
	for i, z := range h.Zones {
		if zones[i], err = z.Copy(); err != nil { // which has counters of its own
			return false, err
		}
	}
	before, main := x.Wait, x.peeking(h.Store)
	c := limiter.Config{Zones: zones, Store: main.ref, Clock: &x.clock}
	if h.Local != nil {
		c.Local = x.peeking(h.Local).ref
	}
	v := x.Try(h, c, r)
	defer func() {
		if c := v.Release(); c != nil {
			c.End()
		}
	}()
	if v.Err != nil {
		return false, v.Err
	}
	if rejected := v.Rejected(); rejected != nil {
		for _, z := range zones[len(x.Here()):] {
			x.Skips(z, "zone "+rejected.Zone.Name+" has refused the request before")
		}
	} else {
		x.describe(h, v, x.Wait-before)
	}
	h.Respond.Note(v) // for the matchers of later routes
	if v.Passes() {
		if v.Outcome != outcome.Allowed {
			x.unasked = outcome.Names[v.Outcome]
		}
		return true, nil
	}
	a := v.Answer(h.Status)
	// The caller gets the last refusal: in an error route a limit writes its own.
	x.answer.Status, x.answer.GRPCStatus = a.Status, h.Respond.GRPCStatus(r, &a)
	if x.answer.GRPCStatus != 0 {
		x.answer.Status = http.StatusOK
	}
	x.answer.RetryAfter, x.answer.Never = a.Told.Round(time.Microsecond).Seconds(), a.Decision.RetryAfter == algorithms.Never
	if h.Respond.Final(r) { // no error routes run
		return false, nil
	}
	return false, caddyhttp.Error(a.Status, errors.New(outcome.Names[a.Outcome]))
}

// peeking returns what answers for a store.
func (x *explainer) peeking(of *pool.Ref) *peeking {
	p := x.stores[of.ID]
	if p == nil {
		p = newPeeking(x.ctx, of, &x.clock)
		x.stores[of.ID] = p
	}
	return p
}

// describe describes the keys of the zones that were asked, in the store that has decided, and how long each zone
// has held the request.
func (x *explainer) describe(h *trial.Handler, v *limiter.Verdict, held time.Duration) {
	of, decided := h.Store, x.peeking(h.Store)
	failed := decided.err
	if failed != nil && h.Local != nil {
		of, decided = h.Local, x.peeking(h.Local)
	}
	for _, visit := range x.Here() {
		q := visit.Asked
		if q == nil {
			continue
		}
		if failed != nil {
			visit.Reason = fmt.Sprintf("%s does not answer (%v), and the zone has on_store_error %s", pool.Describe(h.Store.Backend), failed, q.Zone.OnStoreError)
		}
		if q.Outcome == outcome.FailedOpen || q.Outcome == outcome.FailedClosed {
			continue
		}
		asked := q.Ask()
		l := peek.Look{Rule: asked.Rule, Rules: asked.KeyRules, Of: store.Selector{Key: asked.Key}, Cost: decided.costAsked(&asked)}
		if err := peek.WithStore(x.ctx, of, l.Ask); err != nil {
			visit.Reason = fmt.Sprintf("%s does not answer (%v)", pool.Describe(of.Backend), err)
			continue
		}
		l.Under(h.Store.Networks(asked.Rule), visit.Found.Network)
		visit.State = stateOf(q, &l)
		switch {
		case q.DryRun:
		case q.Decision.Delay > 0 && v.Passes():
			visit.Wait = q.Decision.Delay.Seconds()
		case (l.Ban != nil || !l.Decision.Allowed) && q.Policy.MaxWait > 0:
			visit.Wait = held.Seconds()
		}
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; v.Refused() && !e.DryRun && !e.Decision.Allowed {
			x.Visit(e.Zone.Name).Status = h.Status
		}
	}
}

// stateOf returns the state of the key under the limit of the request.
func stateOf(q *limiter.Entry, l *peek.Look) *adminapi.Key {
	k := l.State(q.Zone, q.Policy, q.Outcome)
	if q.Policy.Slots && l.Ban == nil && k.RetryAfter > 0 { // it holds until another request ends, and its lease is renewed
		k.RetryAfter = q.Policy.Waits(&l.Decision, q.Check.Cost).Told.Seconds()
	}
	k.Cost = q.Check.Cost
	why.Fill(k)
	return k
}
