package admin

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/why"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
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

// readCost reads the cost of the request to look up.
func (c *adminCall) readCost(defaultCost int64) (int64, error) {
	return c.intParameter("cost", defaultCost, 0, algorithms.MaxEvents)
}

// lookUp returns the state of a key. In a zone with plans these are the numbers for the plan that the
// call names, or for all plans.
func (z *runningZone) lookUp(c *adminCall, key string) (*adminapi.Key, error) {
	if name := c.query.Get("plan"); name != "" || z.Plans == nil {
		policies, err := z.policiesOf(name)
		if err != nil {
			return nil, err
		}
		return z.lookUpUnder(c, key, policies)
	}
	return z.lookUpPlans(c, key)
}

// lookUpPlans returns the state of a key under all plans.
func (z *runningZone) lookUpPlans(c *adminCall, key string) (*adminapi.Key, error) {
	var shown *adminapi.Key
	var all []adminapi.PlanStatus
	for _, name := range slices.Sorted(maps.Keys(z.Plans)) {
		plan := z.Plans[name]
		isDefault := plan == z.DefaultPlan
		if plan.Policies.Likely == nil {
			all = append(all, adminapi.PlanStatus{Plan: name, Default: isDefault, Unlimited: true, KeyState: adminapi.KeyState{Outcome: outcome.Names[outcome.Exempt]}})
			continue
		}
		k, err := z.lookUpUnder(c, key, &plan.Policies)
		if err != nil {
			return nil, err
		}
		all = append(all, planStatus(name, isDefault, k))
		if shown == nil || isDefault || k.Refused && !shown.Refused && (z.DefaultPlan == nil || z.DefaultPlan.Policies.Likely == nil) {
			shown = k
		}
	}
	if z.DefaultPlan != nil && z.OwnPolicies.Likely != nil && z.DefaultPlan.Policies.Likely == z.OwnPolicies.Likely {
		k, err := z.lookUpUnder(c, key, &z.OwnPolicies)
		if err != nil {
			return nil, err
		}
		shown = k
		all = append(all, planStatus("", true, k))
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

// planStatus returns what a key under a plan has of its own.
func planStatus(plan string, isDefault bool, k *adminapi.Key) adminapi.PlanStatus {
	return adminapi.PlanStatus{
		Plan: plan, Default: isDefault, KeyState: k.KeyState, Elsewhere: k.Override != nil && k.Override.Elsewhere,
	}
}

// lookUpUnder returns the state of a key under the limit of a plan, or of the zone.
func (z *runningZone) lookUpUnder(c *adminCall, key string, policies *zone.Policies) (*adminapi.Key, error) {
	policy := policies.Likely
	recent, _ := z.Stats.Keys.Of(key)
	usual := max(z.Cost.Number, recent.RefusedCost)
	cost, err := c.readCost(usual)
	if err != nil {
		return nil, err
	}
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
	answer.CostLast = usual > z.Cost.Number && !c.query.Has("cost")
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

// policiesOf returns the quota policies of a plan, or of the zone's own limit without a name. The
// likely one is not nil.
func (z *runningZone) policiesOf(name string) (*zone.Policies, error) {
	policies := &z.OwnPolicies
	if chosen, ok := z.Plans[name]; ok {
		policies = &chosen.Policies
	} else if name != "" && z.Plans == nil {
		return nil, adminError(badRequest, "zone %q has no plans", z.Name)
	} else if name != "" {
		return nil, adminError(badRequest, "zone %q has no plan %q; its plans are %s%s", z.Name, name, strings.Join(z.planNames(), ", "), suggest.Hint(name, z.planNames()))
	}
	if policies.Likely == nil {
		return nil, adminError(badRequest, "zone %q has no limit for plan %q, because this is unlimited", z.Name, name)
	}
	return policies, nil
}

// planNames returns the names of the zone's plans, sorted.
func (z *runningZone) planNames() []string { return slices.Sorted(maps.Keys(z.Plans)) }
