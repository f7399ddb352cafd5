package admin

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
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
	decision algorithms.Decision // of the limit
	ban      *adminapi.Ban
	refusals *adminapi.Refusals
}

// run asks the store, without charging anything.
func (p *peek) run(ctx context.Context, s store.Store) (err error) {
	check := store.Check{Rule: p.rule, Key: p.key, Cost: p.cost, Peek: true}
	overrider, ok := s.(store.Overrider)
	if !ok || p.rules == nil {
		p.decision, err = takeOne(ctx, s, check)
		return err
	}
	if p.rules.Overrides {
		if p.stored, err = overrider.GetRule(ctx, p.rule, store.Selector{Key: p.key}); err != nil {
			return err
		}
	}
	check.KeyRules = &store.KeyRules{Overrides: p.rules.Overrides && p.stored.Kind != store.KindBanned}
	if p.decision, err = takeOne(ctx, s, check); err != nil {
		return err
	}
	check.Cost, check.KeyRules = 0, p.rules // which only a ban refuses
	banned, err := takeOne(ctx, s, check)
	if err == nil && banned.Banned {
		if banned.RetryAfter == algorithms.Never {
			banned.RetryAfter = 0
		}
		p.banned(banned.RetryAfter)
	}
	if err != nil || p.rules.Ban == nil {
		return err
	}
	r, err := overrider.Refusals(ctx, p.rule, p.rules.Ban, p.key)
	p.refusals = &adminapi.Refusals{
		Count: r.Count, Of: p.rules.Ban.After, Within: p.rules.Ban.Within.Seconds(), NextBan: r.Next.Seconds(),
		Begins: !p.decision.Allowed && p.ban == nil && r.Count+1 >= p.rules.Ban.After,
	}
	return err
}

// banned notes that the key is banned for some time; 0 means without an end.
func (p *peek) banned(left time.Duration) {
	p.ban = &adminapi.Ban{By: adminapi.ByRefusals}
	if p.stored.Kind == store.KindBanned {
		p.ban.By = adminapi.ByOverride
	}
	if left > 0 {
		p.ban.Until = why.At(left)
	}
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
		p.banned(p.stored.For)
	}
}

// state describes the key under the limit of a policy.
func (p *peek) state(z *zone.Zone, policy *zone.QuotaPolicy, o outcome.Outcome) *adminapi.Key {
	k := &adminapi.Key{
		Zone: z.Name, KeyText: keyText(z.Template, p.key, len(p.key)), Plan: policy.Plan,
		Limit: describeLimit(p.rule, p.rule.Limit(), true), Rollout: z.Rollout(), Cost: p.cost, CostFrom: z.Cost.From,
		Ban: p.ban, Refusals: p.refusals, Override: p.override(), Overrides: z.Overrides,
		Outcome: outcome.Names[o], Refused: o.Refused(), QuotaStatus: *adminapi.NewQuotaStatus(p.decision), Slots: policy.Slots,
	}
	if k.RetryAfter > 0 { // a queue may have a place before there is more in it
		k.RetryAfter = max(k.RetryAfter, k.NextAfter)
		if p.refusals != nil && p.refusals.Begins { // the next request begins a ban
			k.RetryAfter = max(k.RetryAfter, p.refusals.NextBan)
		}
	}
	return k
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
	case p.ban != nil:
		o = outcome.Banned
	case !p.decision.Allowed:
		o = zone.RefusalOutcome(&p.decision)
	}
	if o != outcome.Allowed && z.IsDryRun(p.key) {
		return outcome.DryRun
	}
	return o
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
	info := adminapi.Override{Kind: o.Kind.String(), Note: o.Note, Since: o.Since, SetBy: o.By}
	if o.For > 0 {
		info.Until = why.At(o.For)
	}
	return info
}
