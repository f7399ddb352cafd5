package admin

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peek finds out where a key stands.
type peek struct {
	rule      *store.Rule
	key       string
	cost      int64
	sanctions *store.KeyRules

	setting  store.Override
	above    algorithms.Decision // with all that stands above the limit, at no cost
	decision algorithms.Decision // by the limit alone, at the cost
}

// nothing is a limit that refuses all, of a zone that there cannot be: a store charges
// nothing of what is asked together with it, and decides it all the same. With settings
// its refusal is not remembered anywhere.
var nothing = func() store.Check {
	rule, err := store.NewRule("", algorithms.TokenBucket{}, algorithms.Limit{Window: time.Second}, 0)
	if err != nil {
		panic(err)
	}
	return store.Check{Rule: rule, Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
}()

// ask asks the store, and charges nothing.
func (p *peek) ask(ctx context.Context, s store.Store) (err error) {
	// A rule of its own has the states of the zone's, but nothing that this process
	// remembers of refusals: it is the store that is to answer, to the cost.
	if p.rule, err = store.NewRule(p.rule.Zone(), p.rule.Algorithm(), p.rule.Limit(), p.rule.Salt()); err != nil {
		return err
	}
	var d [2]algorithms.Decision
	var beneath *store.KeyRules
	if p.sanctions != nil {
		if keeps, ok := s.(store.Overrider); ok && p.sanctions.Overrides {
			if p.setting, err = keeps.Get(ctx, p.rule, p.key); err != nil {
				return err
			}
			if p.setting.Kind != store.KindBanned {
				beneath = &store.KeyRules{Overrides: true}
			}
		}
		above := store.Check{Rule: p.rule, Key: p.key, KeyRules: p.sanctions}
		if err := s.Take(ctx, []store.Check{above}, d[:1]); err != nil {
			return err
		}
		p.above = d[0]
	}
	made, refused := store.Check{Rule: p.rule, Key: p.key, Cost: p.cost, KeyRules: beneath}, nothing
	if refused.Key = p.key; limit.Lends(p.rule.Algorithm().Name()) && p.cost > 0 { // the key is the same, so that one Redis knows both
		made.Hold = store.NewHold()
	}
	err = s.Take(ctx, []store.Check{made, refused}, d[:])
	p.decision = d[0]
	return err
}

// outcome is what would become of a request.
func (p *peek) outcome(z *zone.Zone) outcome.Outcome {
	keyless := z.Template.Varies() && p.key == z.Template.Empty
	o := outcome.Allowed
	switch {
	case keyless && z.MissingKey == zone.MissingReject:
		o = outcome.Rejected
	case keyless && z.MissingKey == zone.MissingSkip, p.above.Exempt || p.decision.Exempt:
		return outcome.Exempt
	case p.above.Banned:
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
	if !p.above.Banned {
		return nil
	}
	b := &adminapi.Ban{By: adminapi.ByRefusals}
	if p.setting.Kind == store.KindBanned {
		b.By = adminapi.ByOverride
	}
	if p.above.RetryAfter != algorithms.Never {
		b.EndsIn = p.above.RetryAfter.Seconds()
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
