package admin

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
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
	decision algorithms.Decision // without bans
	banned   algorithms.Decision // by a ban alone; the zero value if there is none
}

// run asks the store, without charging anything.
func (p *peek) run(ctx context.Context, s store.Store) (err error) {
	check := store.Check{Rule: p.rule, Key: p.key, Cost: p.cost, Peek: true, KeyRules: p.rules}
	if overrider, ok := s.(store.Overrider); ok && p.rules != nil && p.rules.Overrides {
		if p.stored, err = overrider.Get(ctx, p.rule, p.key); err != nil {
			return err
		}
	}
	if p.decision, err = takeOne(ctx, s, check); err != nil || !p.decision.Banned {
		return err
	}
	// RetryAfter may be that of the limit, if that is longer. With a cost of 0 it is that of the ban.
	check.Cost = 0
	if p.banned, err = takeOne(ctx, s, check); err != nil {
		return err
	}
	check.Cost, check.KeyRules = p.cost, &store.KeyRules{Overrides: p.rules.Overrides && p.stored.Kind != store.KindBanned}
	p.decision, err = takeOne(ctx, s, check)
	return err
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
	case keyless && z.MissingKey == zone.MissingReject:
		o = outcome.Rejected
	case keyless && z.MissingKey == zone.MissingSkip, p.decision.Exempt:
		return outcome.Exempt
	case p.banned.Banned:
		o = outcome.Banned
	case !p.decision.Allowed:
		o = z.RefusalOutcome(&p.decision)
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
	if p.banned.RetryAfter != algorithms.Never {
		b.EndsIn = p.banned.RetryAfter.Seconds()
	}
	return b
}

func (p *peek) override() *adminapi.Override {
	if p.stored.Kind == store.KindNone {
		return nil
	}
	o := &adminapi.Override{Kind: p.stored.Kind.String(), Note: p.stored.Note, EndsIn: p.stored.For.Seconds()}
	if p.stored.Kind == store.KindLimit {
		o.Limit = describeLimit(p.rule, p.stored.Limit, p.decision.Override != "")
		o.Elsewhere = p.decision.Override == ""
	}
	return o
}
