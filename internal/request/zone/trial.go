package zone

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Copy returns a zone that decides like this one, and has counters of its own.
func (z *Zone) Copy() (*Zone, error) {
	return New(&z.Zone, z.Place, new(stats.Counters))
}

// LimitOf returns the limit of a plan as it holds, or the zone's own if plan is empty.
func (z *Zone) LimitOf(plan string) (config.Limit, error) {
	if plan == "" {
		if z.MaxEvents == nil {
			return config.Limit{}, fmt.Errorf("zone %q has only the limits of its plans%s", z.Name, z.hint())
		}
		return z.Limit, nil
	}
	if p := z.Plans[plan]; p != nil && !p.Unlimited {
		return p.Limit, nil
	}
	return config.Limit{}, fmt.Errorf("zone %q has no plan %q with a limit%s", z.Name, plan, z.hint())
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

// With returns a copy of the zone that has another limit: in a plan, or instead of the zone's own if
// plan is empty. Plans keep what they take from the zone's own.
func (z *Zone) With(plan string, l config.Limit) (*Zone, error) {
	if _, err := z.LimitOf(plan); err != nil {
		return nil, err
	}
	c := z.Zone
	if plan == "" {
		c.Limit = l
	} else {
		plans := *z.Plan
		plans.Plans = maps.Clone(plans.Plans)
		plans.Plans[plan] = &config.Plan{Limit: l}
		c.Plan = &plans
	}
	made, err := New(&c, z.Place, new(stats.Counters))
	if err != nil {
		return nil, fmt.Errorf("zone %q: %w", z.Name, err)
	}
	if l.Varies() {
		return nil, errors.New("the limit depends on the request")
	}
	return made, nil
}
