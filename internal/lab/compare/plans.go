package compare

import (
	"maps"
	"net/http"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// plans describes what differs between the plans of a zone, plan by plan.
func plans(was, is *zone.Zone) (all []difference) {
	names := slices.Collect(maps.Keys(was.Plans))
	for name := range is.Plans {
		if was.Plans[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		a, b := was.Plans[name], is.Plans[name]
		d := adminapi.OptionDiff{Option: "plan " + name, Was: ofPlan(was, name), Is: ofPlan(is, name)}
		switch {
		case a == nil:
			d.Text = d.Option + " is new: " + d.Is
			all = append(all, difference{d, !b.Unlimited})
		case b == nil:
			d.Text = d.Option + " is gone, was " + d.Was
			all = append(all, difference{d, true})
		case d.Was != d.Is:
			change := changedLimit(d.Option, d.Was, d.Is, a.Policies.Fixed, b.Policies.Fixed)
			change.stricter = change.stricter && !b.Unlimited
			all = append(all, change)
		}
	}
	for _, of := range []struct{ name, was, is string }{
		{"plan", placeholderForm(was.Plan.Of), placeholderForm(is.Plan.Of)},
		{"default plan", otherwise(was), otherwise(is)},
	} {
		if of.was != of.is {
			all = append(all, difference{option(of.name, of.was, of.is), true})
		}
	}
	if all == nil { // what no description tells
		all = []difference{{option("plan", text(was.Plan), text(is.Plan)), true}}
	}
	return all
}

// ofPlan describes the limit of a plan. It is empty if the zone has no such plan.
func ofPlan(z *zone.Zone, name string) string {
	plan := z.Plans[name]
	switch {
	case plan == nil:
		return ""
	case plan.Unlimited:
		return "unlimited"
	}
	limit := z.PlanLimits[name]
	return limit.Describe()
}

// otherwise says what holds for requests with none of the plans.
func otherwise(z *zone.Zone) string {
	if z.Plan.Default != nil {
		return z.Plan.Default.Full(http.StatusForbidden)
	}
	return "the limit of the zone"
}
