package zone

import (
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Rules are one for each algorithm that the zone counts by.
func (z *Zone) Rules() []*store.Rule {
	return z.distinct(func(r *store.Rule) string { return r.Algorithm().Name() }, false)
}

// States are one rule for each family of limits whose states the zone keeps, as far as is
// known here: with those out of placeholders that were made last.
func (z *Zone) States() []*store.Rule { return z.distinct((*store.Rule).ID, true) }

// HasUnknownStates reports whether the zone can keep states that are not known here.
func (z *Zone) HasUnknownStates() bool {
	for _, p := range z.Plans {
		if p.Policies.haveUnknownStates() {
			return true
		}
	}
	return z.OwnPolicies.haveUnknownStates()
}

// distinct are rules of the zone and its plans that differ in something: the likely ones, or
// all that are known.
func (z *Zone) distinct(in func(*store.Rule) string, all bool) (rules []*store.Rule) {
	known := make(map[string]bool)
	add := func(g *QuotaPolicy) {
		if g != nil && !known[in(g.Rule)] {
			known[in(g.Rule)] = true
			rules = append(rules, g.Rule)
		}
	}
	of := func(g *Policies) {
		add(g.Likely)
		if all && g.Varying != nil {
			for i := range g.Varying.Slots {
				add(g.Varying.Slots[i].Load())
			}
		}
	}
	of(&z.OwnPolicies)
	for _, name := range slices.Sorted(maps.Keys(z.Plans)) {
		of(&z.Plans[name].Policies)
	}
	return rules
}
