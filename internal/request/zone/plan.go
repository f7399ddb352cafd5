package zone

import (
	"fmt"
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/config"
)

// Plan is a plan at run time.
type Plan struct {
	Name      string // empty for the zone's own limit as the default
	Unlimited bool
	Limit     config.Limit // with what it takes from the zone's
	Policies  Policies
}

// makePlans makes the zone's plans.
func (z *Zone) makePlans() (err error) {
	z.Plans, z.planByName = make(map[string]*Plan, len(z.Plan.Plans)), make(map[string]*Plan, len(z.Plan.Plans))
	limits := z.Plan.Limits(&z.Limit)
	for _, name := range slices.Sorted(maps.Keys(z.Plan.Plans)) {
		l, limited := limits[name]
		made := &Plan{Name: name, Unlimited: !limited, Limit: l}
		if limited {
			if made.Policies, err = z.policiesOf(name, l); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		z.Plans[name], z.planByName[z.PlanTemplate.NormalizeName(name)] = made, made
	}
	switch {
	case z.Plan.Default == nil:
		z.DefaultPlan = &Plan{Policies: z.OwnPolicies}
	case z.Plan.Default.Word != config.Reject:
		z.DefaultPlan = z.Plans[z.Plan.Default.Word]
	}
	return nil
}
