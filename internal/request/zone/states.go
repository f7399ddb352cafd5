package zone

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// Rules returns one rule for each algorithm of the zone and its plans.
func (z *Zone) Rules() []*store.Rule {
	return z.distinct(func(r *store.Rule) string { return r.Algorithm().Name() }, false)
}

// States returns one rule for each family of limits that the zone keeps states under. Of limits
// from placeholders it has those that were used last.
func (z *Zone) States() []*store.Rule { return z.distinct((*store.Rule).ID, true) }

// HasUnknownStates reports whether the zone may keep states that [Zone.States] does not find.
func (z *Zone) HasUnknownStates() bool {
	return slices.ContainsFunc(z.allPlans(), (*Plan).hasUnknownStates)
}

// allPlans returns the zone's own limit, and its plans.
func (z *Zone) allPlans() []*Plan {
	if z.Own == nil {
		return z.Plans
	}
	return append([]*Plan{z.Own}, z.Plans...)
}

// distinct returns rules of the zone and its plans, one for each identity: of the likely limits,
// or of all that are known.
func (z *Zone) distinct(identity func(*store.Rule) string, all bool) (rules []*store.Rule) {
	known := make(map[string]bool)
	add := func(p *QuotaPolicy) {
		if p != nil && !known[identity(p.Rule)] {
			known[identity(p.Rule)] = true
			rules = append(rules, p.Rule)
		}
	}
	for _, p := range z.allPlans() {
		add(p.Likely)
		for i := 0; all && p.Varies() && i < policySlots; i++ {
			add(p.made[i].Load())
		}
	}
	return rules
}
