package admin

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func showZones(c *adminCall) (any, error) {
	zones := c.zones()
	counts := keyCounts(zones)
	return each(zones, func(z *runningZone) adminapi.Zone {
		answer := z.describe(counts)
		add(&answer, c.view)
		return answer
	}), nil
}

// keyCounts returns the numbers of keys of zones, by name, for stores that can count them. It asks
// each store once, because a store has to look at all of its keys.
func keyCounts(zones []*runningZone) map[string]int64 {
	byCounter := make(map[store.InProcess][]*runningZone)
	for _, z := range zones {
		if counter, ok := z.store.Store.Store.(store.InProcess); ok {
			byCounter[counter] = append(byCounter[counter], z)
		}
	}
	counts := make(map[string]int64)
	for counter, zones := range byCounter {
		var rules []*store.Rule
		for _, z := range zones {
			rules = append(rules, z.Rules()...)
			counts[z.Name] = 0
		}
		for i, n := range counter.CountKeys(rules) {
			counts[rules[i].Zone()] += n
		}
	}
	return counts
}

func (z *runningZone) describe(keys map[string]int64) adminapi.Zone {
	answer := adminapi.Zone{
		Name: z.Name, Limit: z.Description, Rollout: z.rollout(), Key: z.Key, KeyForm: z.Template.Form(), Store: storeName(z.store), OnStoreError: z.OnStoreError,
		ZoneCounts: z.counts(),
	}
	answer.Plans = slices.Sorted(maps.Keys(z.Plans))
	if n, ok := keys[z.Name]; ok {
		answer.Keys = &n
	}
	for _, use := range z.uses {
		answer.Uses = append(answer.Uses, use.JSON)
	}
	return answer
}

// counts returns what this instance has counted of the zone.
func (z *runningZone) counts() (c adminapi.ZoneCounts) {
	c.Totals, c.Rate = make(map[string]uint64), math.Round(100*z.Stats.History.Rate())/100
	for o, n := range z.Stats.Totals() {
		c.Totals[outcome.Names[o]] = n
	}
	if observed, ok := z.store.Store.Store.(store.Observed); ok && z.CountsSlots() {
		held := observed.Stats().InUse[z.Name]
		c.InUse = &held
	}
	if slices.ContainsFunc(z.uses, func(use *zone.Zone) bool { return use.Charge.Fields() != nil }) {
		results, sum := z.Stats.Costs.Read()
		c.Costs, c.CostSum = make(map[string]uint64, len(results)), sum
		for r, n := range results {
			c.Costs[stats.CostNames[r]] = n
		}
	}
	return c
}

// rollout says how far the limit is enforced. Handlers may differ in that.
func (z *runningZone) rollout() string {
	var all []string
	for _, use := range z.uses {
		if text := use.Rollout(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if i := slices.Index(all, ""); i >= 0 && len(all) > 1 {
		all[i] = "enforced"
	}
	return strings.Join(all, ", ")
}
