package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
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
		p := peek{rule: asked.Rule, key: asked.Key, cost: decided.costAsked(&asked), rules: asked.KeyRules}
		if err := withStore(x.ctx, of, p.run); err != nil {
			visit.Reason = fmt.Sprintf("%s does not answer (%v)", pool.Describe(of.Backend), err)
			continue
		}
		p.under(h.Store.Networks(asked.Rule), visit.Found.Network)
		visit.State = stateOf(q, &p)
		switch {
		case q.DryRun:
		case q.Decision.Delay > 0 && v.Passes():
			visit.Wait = q.Decision.Delay.Seconds()
		case (p.ban != nil || !p.decision.Allowed) && q.Policy.MaxWait > 0:
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
func stateOf(q *limiter.Entry, p *peek) *adminapi.Key {
	k := p.state(q.Zone, q.Policy, q.Outcome)
	if q.Policy.Slots && p.ban == nil && k.RetryAfter > 0 { // it holds until another request ends, and its lease is renewed
		k.RetryAfter = q.Policy.Waits(&p.decision, q.Check.Cost).Told.Seconds()
	}
	k.Cost = q.Check.Cost
	why.Fill(k)
	return k
}

// peeking answers what another store would answer, and changes nothing there. It knows what it would have charged, and answers as if
// it had. After a sleep on its clock, it answers as if nothing but the time had passed: no slot has come back. It is for one
// goroutine, and for one request.
type peeking struct {
	ref *pool.Ref // for a limiter
	err error     // of the last Take

	ctx     context.Context
	of      *pool.Ref
	clock   *clock.Timeline
	asked   map[stateKey]int64 // the costs of the last questions
	charged map[stateKey]int64
}

// stateKey is a state of a key.
type stateKey struct{ id, key string }

// newPeeking returns a peeking of the store that a reference is to.
func newPeeking(ctx context.Context, of *pool.Ref, c *clock.Timeline) *peeking {
	p := &peeking{ctx: ctx, of: of, clock: c, asked: make(map[stateKey]int64), charged: make(map[stateKey]int64)}
	p.ref = of.InPlace(p)
	return p
}

// costAsked returns the cost for which the other store was last asked of the state of a check: with what was charged before.
func (p *peeking) costAsked(c *store.Check) int64 { return p.asked[stateKey{c.Rule.ID(), c.Key}] }

// Take implements [store.Store].
func (p *peeking) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if p.err = p.look(checks, decisions); p.err != nil {
		return p.err
	}
	pass := true
	for i := range checks {
		pass = pass && (decisions[i].Allowed || checks[i].Alone())
	}
	for i := range checks {
		if c, d := &checks[i], &decisions[i]; d.Allowed && !d.Exempt && (pass || c.Independent) {
			p.charged[stateKey{c.Rule.ID(), c.Key}] += c.Cost
			d.Remaining = max(0, d.Remaining-c.Cost)
		}
	}
	return nil
}

// look asks the other store for each check with its cost, and what was charged before. A check that costs nothing passes, whatever
// was charged.
func (p *peeking) look(checks []store.Check, decisions []algorithms.Decision) error {
	s, err := p.of.Begin()
	if err != nil {
		return err
	}
	defer s.End()
	asks := slices.Clone(checks)
	for i := range asks {
		c, of := &asks[i], stateKey{checks[i].Rule.ID(), checks[i].Key}
		if c.Cost > 0 {
			c.Cost += p.charged[of]
		}
		p.asked[of], c.Peek, c.Independent = c.Cost, true, false
	}
	if err := s.Store.Store.Take(p.ctx, asks, decisions); err != nil {
		return err
	}
	for i := range checks {
		c, d := &checks[i], &decisions[i]
		p.sleep(c, d)
		counter, counts := s.Store.Store.(store.Overrider)
		if !counts || d.Allowed || d.Banned || c.KeyRules == nil || c.KeyRules.Ban == nil {
			continue
		}
		r, err := counter.Refusals(p.ctx, c.Rule, c.KeyRules.Ban, c.Key)
		if err != nil {
			return err
		}
		if r.Count+1 >= c.KeyRules.Ban.After { // a ban begins with this refusal
			*d = d.Ban(r.Next.Microseconds())
			d.BanBegins = true
		}
	}
	return nil
}

// sleep makes a decision that of a moment later, by what the clock has gone on. It must have begun at 0.
func (p *peeking) sleep(c *store.Check, d *algorithms.Decision) {
	slept := p.clock.Now()
	_, slots := c.Rule.Algorithm().(algorithms.Leaser)
	if limit := c.Rule.Limit(); d.RetryAfter == algorithms.Never && !d.Banned && c.Cost <= d.Quota && c.Cost < p.costAsked(c) {
		d.RetryAfter = max(d.ResetAfter, limit.Window, limit.Lease) // it does not fit beside what was charged before
	}
	switch {
	case d.Allowed:
		d.Delay = max(0, d.Delay-slept)
	case d.RetryAfter == algorithms.Never, slots && !d.Banned:
	case d.RetryAfter <= slept:
		d.Allowed, d.Banned, d.RetryAfter = true, false, 0
	default:
		d.RetryAfter, d.NextAfter, d.ResetAfter = d.RetryAfter-slept, max(0, d.NextAfter-slept), max(0, d.ResetAfter-slept)
	}
}

// Adjust implements [store.Store].
func (p *peeking) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		a := &adjustments[i]
		p.charged[stateKey{a.Rule.ID(), a.Key}] += a.Delta
	}
}

// Instances implements [store.Fleet].
func (p *peeking) Instances() int { return p.of.Instances(0) }

// Reset implements [store.Store]. It does nothing.
func (*peeking) Reset(context.Context, *store.Rule, string) error { return nil }

// Close implements [store.Store].
func (*peeking) Close() error { return nil }

// Networks returns those of the other store.
func (p *peeking) Networks(rule *store.Rule) *store.Networks { return p.of.Networks(rule) }
