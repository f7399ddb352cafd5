package zone

import (
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Plan is a plan at run time.
type Plan struct {
	Name      string // empty for the zone's own limit as the default
	Unlimited bool
	Policies  Policies
}

// Limits returns the zone's own limit and those of its plans, as they are written.
func (z *Zone) Limits() []*limit.Limit {
	limits := []*limit.Limit{&z.Limit}
	if z.Plan != nil {
		for _, p := range z.Plan.Plans {
			if p != nil {
				limits = append(limits, &p.Limit)
			}
		}
	}
	return limits
}

// choosePlan returns the plan of a request.
func (z *Zone) choosePlan(r *placeholder.Request) (*Plan, error) {
	name, err := z.PlanTemplate.Expand(r)
	if err != nil {
		return nil, err
	}
	if len(z.PlanTemplate.Parts) > 1 {
		name = z.PlanTemplate.NormalizeName(name)
	}
	if chosen, ok := z.PlanByName[name]; ok {
		return chosen, nil
	}
	if z.DefaultPlan == nil {
		return nil, errNoPlan
	}
	return z.DefaultPlan, nil
}
