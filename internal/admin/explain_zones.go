package admin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// meeting is what happens when a request meets a handler: its limiter decides over stores that peek. It implements
// [limiter.Witness].
type meeting struct {
	*explainer
	handler *Handler
	request *http.Request
	first   int // the index of the first zone among those of the answer
	asked   []asked

	overruled map[string]*store.Network // what decides about the request in a zone, instead of its limit
}

// asked is what a zone has asked a store.
type asked struct {
	limiter.Entry
	check store.Check
	delay time.Duration
}

// decide decides the request, and notes what its zones do.
func (m *meeting) decide() (passes bool, err error) {
	zones := make([]*zone.Zone, len(m.handler.Zones))
	for i, z := range m.handler.Zones {
		if zones[i], err = z.Copy(); err != nil { // which has counters of its own
			return false, err
		}
	}
	began, main := m.clock.Now(), m.peeking(m.handler.Store)
	config := limiter.Config{
		Zones: zones, Store: main.Ref, Instances: m.handler.Instances, Logger: zap.NewNop(), Clock: &m.clock, Witness: m,
	}
	if m.handler.Local != nil {
		config.Local = m.peeking(m.handler.Local).Ref
	}
	v := limiter.New(config).Decide(m.request)
	defer func() {
		if c := v.Release(); c != nil {
			c.Abandon()
		}
	}()
	if v.Err != nil {
		return false, v.Err
	}
	held := m.clock.Now() - began
	m.answer.Wait += held.Seconds()
	if rejected := v.Rejected(); rejected != nil {
		for _, z := range zones[len(m.answer.Zones)-m.first:] {
			m.answer.Zones = append(m.answer.Zones, adminapi.Visit{Zone: z.Name, Handler: m.handlers, Reason: "zone " + rejected.Zone.Name + " has refused the request before"})
		}
	} else {
		m.describe(v, main, held)
	}
	m.handler.Respond.Note(v) // for the matchers of later routes
	if v.Passes() {
		if v.Outcome != outcome.Allowed {
			m.unasked = outcome.Names[v.Outcome]
		}
		return true, nil
	}
	a := v.Answer(m.handler.Status)
	written := m.handler.Respond.Written(m.request, &a)
	if !m.ended {
		m.ended = true
		m.answer.Passes, m.answer.Outcome = false, outcome.Names[a.Outcome]
		if a.Zone != nil {
			m.answer.Zone = a.Zone.Name
		}
	}
	// The caller gets the last refusal: in an error route a limit writes its own.
	m.answer.Status, m.answer.Language, m.answer.GRPCStatus = written.Status, written.Language, written.GRPCStatus
	m.answer.RetryAfter, m.answer.Never = a.Told.Round(time.Microsecond).Seconds(), a.Endless
	if written.Language != "" { // no error routes run
		return false, nil
	}
	return false, caddyhttp.Error(a.Status, errors.New(outcome.Names[a.Outcome]))
}

// peeking returns what answers for a store.
func (x *explainer) peeking(of *pool.Ref) *pool.Peeking {
	p := x.stores[of.ID]
	if p == nil {
		p = pool.NewPeeking(x.ctx, of, &x.clock)
		x.stores[of.ID] = p
	}
	return p
}

// Met implements [limiter.Witness].
func (m *meeting) Met(z *zone.Zone, c zone.Check, met bool, err error) {
	v := adminapi.Visit{Zone: z.Name, Handler: m.handlers, Met: met && err == nil}
	switch {
	case err != nil:
		v.Reason = err.Error()
	case !met:
		v.Misses = walk.Misses(z.Matchers, m.request, clientip.MatchAny)
	default:
		v.Match = walk.Hit(z.Matchers, m.request, clientip.MatchAny)
		v.DryRun, v.Placeholders = c.DryRun || z.IsDryRun(c.Key), placeholders(z, c.Key)
		m.unasks(z, &c, &v)
		if m.overruled == nil {
			m.overruled = make(map[string]*store.Network)
		}
		m.overruled[z.Name] = c.Network
	}
	m.answer.Zones = append(m.answer.Zones, v)
}

// unasks notes why a zone asks no store.
func (m *meeting) unasks(z *zone.Zone, c *zone.Check, v *adminapi.Visit) {
	switch {
	case c.Rejection != nil && c.Network != nil:
		v.Status, v.Outcome = m.handler.Status, outcome.Names[outcome.Banned]
		if v.Reason = "its network " + c.Network.Prefix.String() + " is banned"; c.DryRun {
			v.Outcome = outcome.Names[outcome.DryRun]
		}
	case c.Rejection != nil:
		v.Status, v.Reason, v.Outcome = c.Status, c.Rejection.Error(), outcome.Names[outcome.Rejected]
		if c.DryRun {
			v.Outcome = outcome.Names[outcome.DryRun]
		}
		if c.Invalid != nil {
			v.Reason += ": " + c.Invalid.Error()
		} else if hit := walk.Hit(z.Block, m.request, clientip.MatchAny); hit != "" {
			v.Reason = "its option block matches: " + hit
		}
	case c.Policy == nil:
		v.Outcome, v.Reason = outcome.Names[outcome.Exempt], "its plan has no limit"
		if c.Network != nil {
			v.Reason = "its network " + c.Network.Prefix.String() + " is exempt"
		} else if hit := walk.Hit(z.Exempt, m.request, clientip.MatchAny); hit != "" {
			v.Reason = "its option exempt matches: " + hit
		} else if z.MissingKey.Word == config.MissingSkip && c.Key == z.Template.Empty {
			v.Reason = "the request has no key (missing_key skip)"
		}
	}
}

// placeholders returns the placeholders of the zone's key with their values.
func placeholders(z *zone.Zone, key string) (all []adminapi.Placeholder) {
	values, _ := z.Template.Values(key)
	for _, p := range z.Template.Parts {
		if p.Placeholder == "" || len(values) == 0 {
			continue
		}
		all = append(all, adminapi.Placeholder{Name: placeholder.Short(p.Placeholder), Value: adminapi.NewKeyText(values[0], 0).Key})
		values = values[1:]
	}
	return all
}

// Decided implements [limiter.Witness].
func (m *meeting) Decided(e *limiter.Entry, c *store.Check, d *algorithms.Decision) {
	m.visit(e.Zone).Outcome = outcome.Names[e.Outcome]
	m.asked = append(m.asked, asked{*e, *c, d.Delay})
}

// visit returns what is answered of a zone that the request has come to.
func (m *meeting) visit(z *zone.Zone) *adminapi.Visit {
	all := m.answer.Zones[m.first:]
	return &all[slices.IndexFunc(all, func(v adminapi.Visit) bool { return v.Zone == z.Name })]
}

// describe describes the keys of the zones that were asked, in the store that has decided, and how long each zone
// has held the request.
func (m *meeting) describe(v *limiter.Verdict, decided *pool.Peeking, held time.Duration) {
	of, failed := m.handler.Store, decided.Err
	if failed != nil && m.handler.Local != nil {
		of, decided = m.handler.Local, m.peeking(m.handler.Local)
	}
	for i := range m.asked {
		q := &m.asked[i]
		visit := m.visit(q.Zone)
		if failed != nil {
			visit.Reason = fmt.Sprintf("%s does not answer (%v), and the zone has on_store_error %s", pool.Describe(m.handler.Store.Backend), failed, q.Zone.OnStoreError)
		}
		if q.Outcome == outcome.FailedOpen || q.Outcome == outcome.FailedClosed {
			continue
		}
		p := peek{rule: q.check.Rule, key: q.check.Key, cost: decided.Asked(&q.check), rules: q.check.KeyRules}
		if err := withStoreIn(m.ctx, of, p.run); err != nil {
			visit.Reason = fmt.Sprintf("%s does not answer (%v)", pool.Describe(of.Backend), err)
			continue
		}
		p.under(m.handler.Store.Networks(q.check.Rule), m.overruled[q.Zone.Name])
		visit.State = q.state(&p)
		switch {
		case !q.check.Independent && q.delay > 0 && v.Passes():
			visit.Wait = q.delay.Seconds()
		case !q.check.Independent && !p.next.Allowed && q.Policy.MaxWait > 0:
			visit.Wait = held.Seconds()
		}
	}
	for i := range v.Enforced {
		if f := v.Refusal(i); v.Refused && !f.Decision.Allowed {
			m.visit(f.Zone).Status = f.Answer(m.handler.Status).Status
		}
	}
}

// state returns the state of the key under the limit of the request.
func (q *asked) state(p *peek) *adminapi.Key {
	quota := p.quota()
	if q.Policy.Slots && !p.next.Banned && quota.RetryAfter > 0 { // it holds until another request ends, and its lease is renewed
		quota.RetryAfter = q.Policy.Waits(&p.next, q.check.Cost).Told.Seconds()
	}
	return &adminapi.Key{
		Zone: q.Zone.Name, KeyText: keyText(q.Zone.Template, p.key, len(p.key)), Plan: q.Policy.Plan, Limit: describeLimit(p.rule, p.rule.Limit(), true),
		Rollout: q.Zone.Rollout(), Cost: q.check.Cost, CostFrom: q.Zone.Cost.From, QuotaStatus: quota, Slots: q.Policy.Slots,
		Ban: p.ban(), Refusals: p.refusals, Override: p.override(), Overrides: q.Zone.Overrides,
		Outcome: outcome.Names[q.Outcome], Refused: q.Outcome.Refused(),
	}
}
