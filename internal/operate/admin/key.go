package admin

import (
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	keys "github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// showKey shows a key of a zone. It charges nothing and creates no state.
func showKey(c *adminCall) (any, error) {
	key, err := c.readKey()
	if err != nil {
		return nil, err
	}
	return c.zone.lookUp(c, key)
}

// lookUp returns the state of a key. In a zone with plans, the numbers are those of the default plan, or else of a plan that
// refuses the key, or of any, with the states under all plans.
func (z *runningZone) lookUp(c *adminCall, key string) (*adminapi.Key, error) {
	if z.Plans == nil {
		return z.lookUpUnder(c, key, &z.OwnPolicies)
	}
	var shown *adminapi.Key
	var all []adminapi.Key
	for _, name := range slices.Sorted(maps.Keys(z.Plans)) {
		plan := z.Plans[name]
		isDefault := plan == z.DefaultPlan
		if plan.Policies.Likely == nil {
			all = append(all, adminapi.Key{Zone: z.Name, KeyText: keyText(z.Template, key, len(key)), Plan: name, Default: isDefault, Unlimited: true, Outcome: outcome.Names[outcome.Exempt]})
			continue
		}
		k, err := z.lookUpUnder(c, key, &plan.Policies)
		if err != nil {
			return nil, err
		}
		k.Plan, k.Default = name, isDefault
		all = append(all, *k)
		if shown == nil || isDefault || k.Refused && !shown.Refused && (z.DefaultPlan == nil || z.DefaultPlan.Policies.Likely == nil) {
			shown = k
		}
	}
	if z.DefaultPlan != nil && z.OwnPolicies.Likely != nil && z.DefaultPlan.Policies.Likely == z.OwnPolicies.Likely {
		k, err := z.lookUpUnder(c, key, &z.OwnPolicies)
		if err != nil {
			return nil, err
		}
		k.Default = true
		all, shown = append(all, *k), k
	}
	if shown == nil {
		return nil, adminError(badRequest, "zone %q limits no requests, because all of its plans are unlimited", z.Name)
	}
	shown.Plans = all
	if z.DefaultPlan == nil {
		shown.NoPlan = z.PlanlessStatus()
	}
	return shown, nil
}

// lookUpUnder returns the state of a key under the limit of a plan, or of the zone.
func (z *runningZone) lookUpUnder(c *adminCall, key string, policies *zone.Policies) (*adminapi.Key, error) {
	policy := policies.Likely
	recent, _ := z.Stats.Keys.Of(key)
	cost := max(z.Cost.Number, recent.RefusedCost)
	all := z.networks()
	network := all.Find(keys.ParseAddress(key))
	if network != nil && network.Override.Kind == store.KindLimit {
		if overruled := policy.Overruled(network); overruled != nil {
			policy = overruled
		} else {
			network = nil // its limit is for another algorithm
		}
	}
	p := peek{rule: policy.Rule, key: key, cost: cost, rules: z.KeyRules}
	if err := withStore(c.request.Context(), z.store, p.run); err != nil {
		return nil, z.storeError(err)
	}
	p.under(all, network)
	o := p.outcome(z.Zone)
	answer := p.state(z.Zone, policy, o)
	answer.Limit, answer.Rollout, answer.Lately = z.Description, z.rollout(), z.lately(key)
	answer.CostLast = cost > z.Cost.Number
	if policies.Varying != nil {
		answer.Assumed = describeLimit(policy.Rule, policy.Rule.Limit(), true)
	}
	if o == outcome.Rejected {
		answer.Status = z.KeylessStatus()
	}
	if len(z.Block) > 0 {
		answer.BlockStatus = zone.BlockStatus
	}
	if z.Plans != nil {
		answer.PlanFrom = z.PlanTemplate.Form()
	}
	why.Fill(answer)
	return answer, nil
}

// lately returns the recent counts of a key, or nil if there are none.
func (z *runningZone) lately(key string) *adminapi.Lately {
	recent, since := z.Stats.Keys.Of(key)
	counts := recent.Counts
	if counts[topk.Requests].AtLeast == 0 {
		return nil
	}
	return &adminapi.Lately{Since: since, Plan: recent.Plan, Requests: counts[topk.Requests].AtLeast, Refused: counts[topk.Refused].AtLeast, DryRun: z.mayTry(key, false)}
}
