package zone

import (
	"maps"
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
	return slices.ContainsFunc(z.allPolicies(), (*Policies).haveUnknownStates)
}

// allPolicies returns the policies of the zone and of its plans.
func (z *Zone) allPolicies() []*Policies {
	all := []*Policies{&z.OwnPolicies}
	for _, name := range slices.Sorted(maps.Keys(z.Plans)) {
		all = append(all, &z.Plans[name].Policies)
	}
	return all
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
	for _, p := range z.allPolicies() {
		add(p.Likely)
		for i := 0; all && p.Varying != nil && i < policySlots; i++ {
			add(p.Varying.slots[i].Load())
		}
	}
	return rules
}
