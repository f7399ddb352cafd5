package zone

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Copy returns a zone that decides like this one, and has counters of its own.
func (z *Zone) Copy() *Zone {
	return &Zone{
		Name: z.Name, Index: z.Index, Matchers: z.Matchers, Template: z.Template, Stats: new(stats.Counters), StoreID: z.StoreID,
		OnStoreError: z.OnStoreError, Exceeded: z.Exceeded, JSON: z.JSON, Description: z.Description,
		Limit: z.Limit, Plan: z.Plan, Builder: z.Builder, OwnPolicies: z.OwnPolicies, Plans: z.Plans, PlanByName: z.PlanByName,
		PlanTemplate: z.PlanTemplate, DefaultPlan: z.DefaultPlan, Policy: z.Policy, NearLimit: z.NearLimit,
		Cost: z.Cost, FixedCost: z.FixedCost, HasPolicies: z.HasPolicies, RequestPolicies: z.RequestPolicies,
		ChargesLate: z.ChargesLate, ChargeOnResponse: z.ChargeOnResponse, CostHeader: z.CostHeader, CostBrokenOff: z.CostBrokenOff,
		CostResponse: z.CostResponse, CostRequest: z.CostRequest,
		Overrides: z.Overrides, KeyRules: z.KeyRules,
	}
}

// LimitOf returns the limit of a plan as it holds, or the zone's own if plan is empty.
func (z *Zone) LimitOf(plan string) (l limit.Limit, err error) {
	switch {
	case plan != "":
		p, known := z.Plans[plan]
		if !known || p.Unlimited {
			return l, fmt.Errorf("zone %q has no plan %q with a limit%s", z.Name, plan, z.hint())
		}
		if written := z.Plan.Plans[plan]; written != nil {
			l = written.Limit
		}
		return l.Over(&z.Limit), nil
	case z.MaxEvents == nil:
		return l, fmt.Errorf("zone %q has only the limits of its plans%s", z.Name, z.hint())
	}
	return z.Limit, nil
}

// hint names the plans of the zone that have a limit.
func (z *Zone) hint() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(z.Plans)) {
		if !z.Plans[name].Unlimited {
			names = append(names, z.Name+"."+name)
		}
	}
	if names == nil {
		return ""
	}
	return ": name one, as " + strings.Join(names, " or ")
}

// With returns a copy of the zone that has another limit: in a plan, or in place of the zone's own if
// plan is empty.
func (z *Zone) With(plan string, l limit.Limit) (*Zone, error) {
	if _, err := z.LimitOf(plan); err != nil {
		return nil, err
	}
	b := z.Builder
	b.Plan, b.Limit = plan, l
	policies, err := NewPolicies(b)
	if err != nil {
		return nil, fmt.Errorf("zone %q: %w", z.Name, err)
	}
	if policies.Fixed == nil {
		return nil, errors.New("the limit depends on the request")
	}
	c := z.Copy()
	if plan == "" {
		c.Limit, c.OwnPolicies = l, policies
		if c.Plan == nil {
			c.Policy = policies.Fixed
		} else if c.DefaultPlan != nil && c.DefaultPlan.Name == "" {
			c.DefaultPlan = &Plan{Policies: policies}
		}
		return c, nil
	}
	old, made := z.Plans[plan], &Plan{Name: plan, Policies: policies}
	c.Plans, c.PlanByName = maps.Clone(z.Plans), maps.Clone(z.PlanByName)
	for _, all := range []map[string]*Plan{c.Plans, c.PlanByName} {
		for name, p := range all {
			if p == old {
				all[name] = made
			}
		}
	}
	if c.DefaultPlan == old {
		c.DefaultPlan = made
	}
	return c, nil
}
