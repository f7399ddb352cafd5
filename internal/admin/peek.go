package admin

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peek finds out where a key stands.
type peek struct {
	rule  *store.Rule
	key   string
	cost  int64
	rules *store.KeyRules

	setting  store.Override
	decision algorithms.Decision // without bans
	banned   algorithms.Decision // by a ban alone; the zero value if there is none
}

// ask asks the store, and changes nothing.
func (p *peek) ask(ctx context.Context, s store.Store) (err error) {
	check := store.Check{Rule: p.rule, Key: p.key, Cost: p.cost, Peek: true, KeyRules: p.rules}
	if keeps, ok := s.(store.Overrider); ok && p.rules != nil && p.rules.Overrides {
		if p.setting, err = keeps.Get(ctx, p.rule, p.key); err != nil {
			return err
		}
	}
	if p.decision, err = take(ctx, s, check); err != nil || !p.decision.Banned {
		return err
	}
	// The wait may be that of the limit, if that is longer. With a cost of 0 it is the ban's.
	check.Cost = 0
	if p.banned, err = take(ctx, s, check); err != nil {
		return err
	}
	check.Cost, check.KeyRules = p.cost, &store.KeyRules{Overrides: p.rules.Overrides && p.setting.Kind != store.KindBanned}
	p.decision, err = take(ctx, s, check)
	return err
}

func take(ctx context.Context, s store.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(ctx, []store.Check{c}, d[:])
	return d[0], err
}

// outcome is what would become of a request.
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
	if p.setting.Kind == store.KindBanned {
		b.By = adminapi.ByOverride
	}
	if p.banned.RetryAfter != algorithms.Never {
		b.EndsIn = p.banned.RetryAfter.Seconds()
	}
	return b
}

func (p *peek) override() *adminapi.Override {
	if p.setting.Kind == store.KindNone {
		return nil
	}
	o := &adminapi.Override{Kind: p.setting.Kind.String(), Note: p.setting.Note, EndsIn: p.setting.For.Seconds()}
	if p.setting.Kind == store.KindLimit {
		o.Limit = describeOwn(p.rule, p.setting.Limit, p.decision.Override != "")
		o.Elsewhere = p.decision.Override == ""
	}
	return o
}
