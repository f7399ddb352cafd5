package caddyratelimit

import (
	"maps"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// rules are one for each algorithm that the zone counts by.
func (z *liveZone) rules() []*store.Rule {
	return z.distinct(func(r *store.Rule) string { return r.Algorithm().Name() }, false)
}

// states are one rule for each family of limits whose states the zone keeps, as far as is
// known here: with those out of placeholders that were made last.
func (z *liveZone) states() []*store.Rule { return z.distinct((*store.Rule).ID, true) }

// scatters reports whether the zone can keep states that are not known here.
func (z *liveZone) scatters() bool {
	for _, p := range z.plans {
		if p.grants.scatter() {
			return true
		}
	}
	return z.own.scatter()
}

// distinct are rules of the zone and its plans that differ in something: the likely ones, or
// all that are known.
func (z *liveZone) distinct(in func(*store.Rule) string, all bool) (rules []*store.Rule) {
	known := make(map[string]bool)
	add := func(g *grant) {
		if g != nil && !known[in(g.rule)] {
			known[in(g.rule)] = true
			rules = append(rules, g.rule)
		}
	}
	of := func(g *grants) {
		add(g.likely)
		if all && g.varying != nil {
			for i := range g.varying.slots {
				add(g.varying.slots[i].Load())
			}
		}
	}
	of(&z.own)
	for _, name := range slices.Sorted(maps.Keys(z.plans)) {
		of(&z.plans[name].grants)
	}
	return rules
}
