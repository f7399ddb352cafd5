package admin

import (
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// showKey shows a key of a zone. It charges nothing and creates no state.
func showKey(c *adminCall) error {
	key, err := c.readKey("plan", "cost")
	if err != nil {
		return err
	}
	answer, err := c.zone.lookUp(c, key)
	if err != nil {
		return err
	}
	return c.writeJSON(answer)
}

// readCost reads the cost of the request to look up.
func (c *adminCall) readCost(defaultCost int64) (int64, error) {
	return c.intParameter("cost", defaultCost, 0, algorithms.MaxEvents)
}

// lookUp returns the state of a key.
func (z *runningZone) lookUp(c *adminCall, key string) (*adminapi.Key, error) {
	policies, err := z.policiesOf(c.query.Get("plan"))
	if err != nil {
		return nil, err
	}
	policy := policies.Likely
	cost, err := c.readCost(z.FixedCost)
	if err != nil {
		return nil, err
	}
	p := peek{rule: policy.Rule, key: key, cost: cost, rules: z.KeyRules}
	if err := withStore(z.store, c, p.run); err != nil {
		return nil, z.storeError(err)
	}
	answer := &adminapi.Key{
		Zone: z.Name, KeyText: keyText(z.Template, key, len(key)), Plan: policy.Plan, Limit: z.Description,
		Cost: cost, CostFrom: z.Cost.From, QuotaStatus: *adminapi.NewQuotaStatus(p.decision),
		Ban: p.ban(), Override: p.override(), Overrides: z.Overrides, Lately: z.lately(key),
	}
	if policies.Varying != nil {
		answer.Assumed = describeLimit(policy.Rule, policy.Rule.Limit(), true)
	}
	if policy.Others != nil {
		others := peek{rule: policy.Others.Rule, key: key, cost: cost, rules: z.KeyRules}
		if err := withStore(z.store, c, others.run); err != nil {
			return nil, z.storeError(err)
		}
		answer.Others = adminapi.NewQuotaStatus(others.decision)
	}
	if len(z.Block) > 0 {
		answer.BlockStatus = z.BlockStatus
	}
	o := p.outcome(z.Zone)
	if o == outcome.Rejected {
		answer.Status = z.MissingKeyStatus
	}
	answer.Outcome, answer.Refused = outcome.Names[o], o.Declined()
	return answer, nil
}

// lately returns the recent counts of a key, or nil if there are none.
func (z *runningZone) lately(key string) *adminapi.Lately {
	counts, since := z.Stats.Keys.Counts(key)
	if counts[topk.Requests].AtLeast == 0 {
		return nil
	}
	return &adminapi.Lately{Since: since, Requests: counts[topk.Requests].AtLeast, Refused: counts[topk.Refused].AtLeast}
}

// policiesOf returns the quota policies of a plan, or of requests without a plan. The likely one is
// not nil.
func (z *runningZone) policiesOf(name string) (*zone.Policies, error) {
	policies := &z.OwnPolicies
	if chosen, ok := z.Plans[name]; ok {
		policies = &chosen.Policies
	} else if name != "" {
		return nil, adminError(badRequest, "zone %q has no plan %q; its plans are %q",
			z.Name, name, slices.Sorted(maps.Keys(z.Plans)))
	} else if z.DefaultPlan != nil {
		policies = &z.DefaultPlan.Policies
	}
	if policies.Likely == nil {
		return nil, adminError(badRequest, "zone %q does not limit requests of this plan; name another one with plan=..., one of %q",
			z.Name, slices.Sorted(maps.Keys(z.Plans)))
	}
	return policies, nil
}
