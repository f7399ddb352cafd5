package admin

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/why"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peek looks up the state of a key.
type peek struct {
	rule  *store.Rule
	key   string
	cost  int64
	rules *store.KeyRules

	stored   store.Override
	network  *store.Network      // the network that has the stored override, if the key has none
	next     algorithms.Decision // on the next request
	refusals *adminapi.Refusals
	decision algorithms.Decision // without bans
	banned   algorithms.Decision // by a ban alone; the zero value if there is none
	owed     int64
}

// run asks the store, without charging anything.
func (p *peek) run(ctx context.Context, s store.Store) (err error) {
	check := store.Check{Rule: p.rule, Key: p.key, Cost: p.cost, Peek: true, KeyRules: p.rules}
	if overrider, ok := s.(store.Overrider); ok && p.rules != nil && p.rules.Overrides {
		if p.stored, err = overrider.GetRule(ctx, p.rule, store.Selector{Key: p.key}); err != nil {
			return err
		}
	}
	if p.decision, err = takeOne(ctx, s, check); err != nil {
		return err
	}
	p.next = p.decision
	if err := p.countRefusals(ctx, s); err != nil {
		return err
	}
	if !p.decision.Banned {
		return p.owes(ctx, s)
	}
	// RetryAfter may be that of the limit, if that is longer. With a cost of 0 it is that of the ban.
	check.Cost = 0
	if p.banned, err = takeOne(ctx, s, check); err != nil {
		return err
	}
	check.Cost, check.KeyRules = p.cost, &store.KeyRules{Overrides: p.rules.Overrides && p.stored.Kind != store.KindBanned}
	if p.decision, err = takeOne(ctx, s, check); err != nil {
		return err
	}
	return p.owes(ctx, s)
}

// under has the override of a network decide, if the key has none.
func (p *peek) under(all *store.Networks, n *store.Network) {
	if n == nil || p.stored.Kind != store.KindNone {
		return
	}
	p.stored, p.network = all.Remaining(n), n
	switch p.stored.Kind {
	case store.KindExempt:
		p.decision.Exempt = true
	case store.KindBanned:
		left := p.stored.For.Microseconds()
		if left == 0 {
			left = -1
		}
		p.banned = algorithms.Decision{Quota: p.decision.Quota}.Ban(left)
		p.next = p.decision.Ban(left)
	}
}

// countRefusals asks how near the key is to a ban by the zone.
func (p *peek) countRefusals(ctx context.Context, s store.Store) error {
	counter, ok := s.(store.Overrider)
	if !ok || p.rules == nil || p.rules.Ban == nil {
		return nil
	}
	r, err := counter.Refusals(ctx, p.rule, p.rules.Ban, p.key)
	p.refusals = &adminapi.Refusals{
		Count: r.Count, Of: p.rules.Ban.After, Within: p.rules.Ban.Within.Seconds(), EndsIn: r.Left.Seconds(), NextBan: r.Next.Seconds(),
		Begins: !p.next.Allowed && !p.next.Banned && r.Count+1 >= p.rules.Ban.After,
	}
	return err
}

// quota returns the numbers of the limit, with the times that hold for the next request: while the
// key is banned, those of the ban if they are longer.
func (p *peek) quota() adminapi.QuotaStatus {
	q := *adminapi.NewQuotaStatus(p.decision)
	q.Owed = p.owed
	q.Used += p.owed
	if q.RetryAfter > 0 { // a queue may have a place before there is more in it
		q.RetryAfter = max(q.RetryAfter, q.NextAfter)
		if p.refusals != nil && p.refusals.Begins { // the next request begins a ban
			q.RetryAfter = max(q.RetryAfter, p.refusals.NextBan)
		}
	}
	if p.banned.Banned {
		next := adminapi.NewQuotaStatus(p.next)
		q.RetryAfter, q.Never, q.NextAfter, q.ResetAfter = next.RetryAfter, next.Never, next.NextAfter, next.ResetAfter
	}
	return q
}

// state describes the key under the limit of a policy.
func (p *peek) state(z *zone.Zone, policy *zone.QuotaPolicy, o outcome.Outcome) *adminapi.Key {
	return &adminapi.Key{
		Zone: z.Name, KeyText: keyText(z.Template, p.key, len(p.key)), Plan: policy.Plan,
		Limit: describeLimit(p.rule, p.rule.Limit(), true), Rollout: z.Rollout(), Cost: p.cost, CostFrom: z.Cost.From,
		Ban: p.ban(), Refusals: p.refusals, Override: p.override(), Overrides: z.Overrides,
		KeyState: adminapi.KeyState{Outcome: outcome.Names[o], Refused: o.Refused(), QuotaStatus: p.quota(), Slots: policy.Slots},
	}
}

func takeOne(ctx context.Context, s store.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(ctx, []store.Check{c}, d[:])
	return d[0], err
}

// outcome returns the outcome that a request would have.
func (p *peek) outcome(z *zone.Zone) outcome.Outcome {
	keyless := z.Template.Varies() && p.key == z.Template.Empty
	o := outcome.Allowed
	switch {
	case keyless && z.MissingKey.Word == config.Reject:
		o = outcome.Rejected
	case keyless && z.MissingKey.Word == config.MissingSkip, p.decision.Exempt:
		return outcome.Exempt
	case p.banned.Banned:
		o = outcome.Banned
	case !p.decision.Allowed:
		o = zone.RefusalOutcome(&p.decision)
	}
	if o != outcome.Allowed && z.IsDryRun(p.key) {
		return outcome.DryRun
	}
	return o
}

func (p *peek) ban() *adminapi.Ban {
	if !p.banned.Banned {
		return nil
	}
	b := &adminapi.Ban{By: adminapi.ByRefusals}
	if p.stored.Kind == store.KindBanned {
		b.By = adminapi.ByOverride
	}
	own := adminapi.NewQuotaStatus(p.decision)
	b.LimitRetryAfter, b.LimitNever = own.RetryAfter, own.Never
	if p.banned.RetryAfter != algorithms.Never {
		b.EndsIn = p.banned.RetryAfter.Seconds()
		b.Until = why.At(b.EndsIn)
	}
	return b
}

func (p *peek) override() *adminapi.Override {
	if p.stored.Kind == store.KindNone {
		return nil
	}
	o := overrideInfo(&p.stored)
	if p.network != nil {
		o.Network = p.network.Prefix.String()
	}
	if p.stored.Kind == store.KindLimit {
		here := p.decision.Override != "" || p.network != nil
		o.Limit, o.Elsewhere = describeLimit(p.rule, p.stored.Limit, here), !here
	}
	return &o
}

// overrideInfo describes an override, but for its limit.
func overrideInfo(o *store.Override) adminapi.Override {
	info := adminapi.Override{Kind: o.Kind.String(), Note: o.Note, SetBy: o.By, EndsIn: o.For.Seconds()}
	if o.For > 0 {
		info.Until = why.At(info.EndsIn)
	}
	if !o.Since.IsZero() {
		info.Since = &o.Since
	}
	return info
}
