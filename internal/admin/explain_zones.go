package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// meeting is what happens when a request meets a handler. It goes through the steps of package
// limiter, and looks instead of charging.
type meeting struct {
	*explainer
	handler *Handler
	request *http.Request

	asked    []*question
	rejected *adminapi.Visit // by the zone that refuses the request without asking the store

	// What is decided on the request. The status is 0 if it passes.
	outcome, zone string
	status        int
	retryAfter    float64
	never         bool
}

// question is what a zone asks the store.
type question struct {
	zone  *zone.Zone
	check zone.Check
	peek  peek
	visit int // the index of the zone among those of the answer

	outcome   outcome.Outcome
	wait      time.Duration // for which the zone holds a request that it would else refuse
	undecided bool          // no store is asked, or none answers
}

// collect finds the zones that the request meets.
func (m *meeting) collect() error {
	request := placeholder.RequestOf(m.request)
	for _, z := range m.handler.Zones {
		v := adminapi.Visit{Zone: z.Name, Handler: m.handlers}
		if m.rejected != nil {
			v.Reason = "zone " + m.rejected.Zone + " has refused the request before"
			m.answer.Zones = append(m.answer.Zones, v)
			continue
		}
		var c zone.Check
		met, err := z.Meet(&c, &request, nil)
		v.Met = met && err == nil
		switch {
		case err != nil:
			v.Reason = err.Error()
			m.answer.Zones = append(m.answer.Zones, v)
			return err
		case !met:
			v.Misses = walk.Misses(z.Matchers, m.request, clientip.MatchAny)
		default:
			v.Match = walk.Hit(z.Matchers, m.request, clientip.MatchAny)
			v.DryRun, v.Placeholders = c.DryRun || z.IsDryRun(c.Key), placeholders(z, c.Key)
			m.meet(z, &c, &v)
		}
		m.answer.Zones = append(m.answer.Zones, v)
		if v.Outcome == outcome.Names[outcome.Rejected] {
			m.rejected = &v
			m.outcome, m.zone, m.status = v.Outcome, v.Zone, v.Status
		}
	}
	return nil
}

// meet notes what a zone does with a request that it counts.
func (m *meeting) meet(z *zone.Zone, c *zone.Check, v *adminapi.Visit) {
	switch {
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
		if hit := walk.Hit(z.Exempt, m.request, clientip.MatchAny); hit != "" {
			v.Reason = "its option exempt matches: " + hit
		} else if z.MissingKey == zone.MissingSkip && c.Key == z.Template.Empty {
			v.Reason = "the request has no key (missing_key skip)"
		}
	default:
		m.asked = append(m.asked, &question{zone: z, check: *c, visit: len(m.answer.Zones), peek: peek{
			rule: c.Policy.Rule, key: c.Key, cost: c.Cost + m.charged[stateOf(c)], rules: z.KeyRules,
		}})
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

// ask looks up what the zones would ask the store, or what decides while the store does not answer.
func (m *meeting) ask() {
	look := func(all []*question) func(context.Context, store.Store) error {
		return func(ctx context.Context, s store.Store) error {
			for _, q := range all {
				if err := q.peek.run(ctx, s); err != nil {
					return err
				}
				q.decide()
			}
			return nil
		}
	}
	if len(m.asked) == 0 {
		return
	}
	if err := withStoreIn(m.ctx, m.handler.Store, look(m.asked)); err != nil {
		m.fallBack(err, func(all []*question) error { return withStoreIn(m.ctx, m.handler.Local, look(all)) })
	}
}

// decide says what the decision of the store means for the request.
func (q *question) decide() {
	q.outcome = q.peek.outcome(q.zone)
	d, p := &q.peek.next, q.check.Policy
	switch {
	case q.outcome == outcome.Exempt:
	case d.Allowed:
		q.wait = d.Delay
	case p.MaxWait > 0 && !p.Queues && !d.Banned && d.RetryAfter != algorithms.Never && (p.Lends || d.RetryAfter <= p.MaxWait):
		if q.wait = d.RetryAfter; p.Lends {
			q.wait = p.MaxWait // a slot may come back at any time
		}
	}
}

// fallBack decides without the store, by the on_store_error of the zones.
func (m *meeting) fallBack(cause error, local func([]*question) error) {
	n := m.handler.Store.Instances(m.handler.Instances)
	var alone []*question
	m.unasked = outcome.Names[outcome.FailedOpen]
	for _, q := range m.asked {
		m.answer.Zones[q.visit].Reason = fmt.Sprintf("%s does not answer (%v), and the zone has on_store_error %s",
			pool.Describe(m.handler.Store.Backend), cause, q.zone.OnStoreError)
		q.outcome, q.undecided = outcome.FailedOpen, true
		switch {
		case q.zone.OnStoreError == zone.DenyOnError && !q.check.DryRun:
			m.outcome, m.status = outcome.Names[outcome.FailedClosed], http.StatusServiceUnavailable
		case q.zone.OnStoreError == zone.LocalOnError && m.handler.Local != nil:
			q.peek.rule = q.peek.rule.Split(n)
			alone = append(alone, q)
		}
	}
	if m.status != 0 {
		for _, q := range m.asked {
			q.outcome = outcome.FailedClosed
		}
		return
	}
	if len(alone) == 0 || local(alone) != nil {
		return
	}
	m.unasked = outcome.Names[outcome.Local]
	for _, q := range alone {
		q.undecided = false
		if q.outcome == outcome.Allowed {
			q.outcome = outcome.Local
		}
	}
}

// refuses reports whether the zone refuses the request, and does not hold it instead.
func (q *question) refuses() bool { return q.declines() && q.wait == 0 }

// declines reports whether the limit refuses the request at once.
func (q *question) declines() bool { return !q.check.DryRun && q.outcome.Refused() }

// finish sums up the zones that were asked.
func (m *meeting) finish() {
	if slices.ContainsFunc(m.asked, (*question).refuses) {
		m.refuse()
	}
	wait := time.Duration(0)
	for _, q := range m.asked {
		v := &m.answer.Zones[q.visit]
		switch {
		case m.rejected != nil:
			q.outcome, q.undecided = outcome.NotCharged, true
		case q.undecided:
		case m.status != 0 && q.declines():
			v.Status = m.statusOf(q)
		case m.status != 0 && !q.check.DryRun && q.outcome != outcome.Exempt:
			q.outcome = outcome.NotCharged
		case m.status == 0 && !q.check.DryRun:
			if q.declines() { // the request waits until there is room
				q.outcome = outcome.Allowed
			}
			v.Wait = q.wait.Seconds()
			wait = max(wait, q.wait)
		}
		v.Outcome = outcome.Names[q.outcome]
		if !q.undecided {
			v.State = q.state()
		}
		if m.status == 0 && (q.outcome == outcome.Allowed || q.outcome == outcome.Local) {
			m.charged[stateOf(&q.check)] += q.check.Cost
		}
	}
	if m.status == 0 {
		m.answer.Wait += wait.Seconds()
	}
}

// refuse refuses the request, by the zone that does so for longest.
func (m *meeting) refuse() {
	longest, told := time.Duration(-1), time.Duration(0)
	for _, q := range m.asked {
		policy, d := q.check.Policy, &q.peek.next
		if !q.declines() {
			continue
		}
		waits := policy.Waits(d, q.check.Cost)
		if holds := max(waits.Holds, q.peek.atLeast()); holds > longest {
			longest, told = holds, max(waits.Told, q.peek.atLeast())
			m.outcome, m.zone, m.never = outcome.Names[q.outcome], q.zone.Name, longest == algorithms.Never
			m.status = m.statusOf(q)
		}
	}
	if !m.never {
		m.retryAfter = told.Round(time.Microsecond).Seconds()
	}
}

// statusOf returns the status of a refusal.
func (m *meeting) statusOf(q *question) int {
	if len(q.zone.Reserve) > 0 && q.check.Policy.Lends && !q.peek.next.Banned {
		return http.StatusServiceUnavailable
	}
	return m.handler.Status
}

// stateOf names the state that a request charges.
func stateOf(c *zone.Check) string { return c.Policy.Rule.ID() + "\x00" + c.Key }

// state returns the state of the key under the limit of the request.
func (q *question) state() *adminapi.Key {
	z, policy, p := q.zone, q.check.Policy, &q.peek
	return &adminapi.Key{
		Zone: z.Name, KeyText: keyText(z.Template, p.key, len(p.key)), Plan: policy.Plan, Limit: describeLimit(p.rule, p.rule.Limit(), true),
		Rollout: z.Rollout(), Cost: q.check.Cost, CostFrom: z.Cost.From, QuotaStatus: p.quota(), Slots: policy.Lends,
		Ban: p.ban(), Refusals: p.refusals, Override: p.override(), Overrides: z.Overrides(),
		Outcome: outcome.Names[q.outcome], Refused: q.outcome.Refused(),
	}
}
