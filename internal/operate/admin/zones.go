package admin

import (
	"math"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func showZones(c *adminCall) (any, error) {
	counts := keyCounts(runningStores()...)
	return each(c.zones(), func(z *runningZone) adminapi.Zone {
		answer := z.describe(counts)
		add(&answer, c.view)
		return answer
	}), nil
}

// keyCounts returns the numbers of keys of zones, by name, in stores that can count them. They have to look at all of their keys.
func keyCounts(stores ...*runningStore) map[string]int64 {
	counts := make(map[string]int64)
	for _, s := range stores {
		counter, ok := s.store.Store.Store.(store.InProcess)
		if !ok {
			continue
		}
		var rules []*store.Rule
		for _, z := range s.zones {
			rules, counts[z.Name] = append(rules, z.Rules()...), 0
		}
		for i, n := range counter.CountKeys(rules) {
			counts[rules[i].Zone()] += n
		}
	}
	return counts
}

func (z *runningZone) describe(keys map[string]int64) adminapi.Zone {
	answer := adminapi.Zone{
		Name: z.Name, Limit: z.Description, Rollout: z.rollout(), Key: z.Key, KeyForm: z.Template.Form(), Store: storeName(z.Store), OnStoreError: z.OnStoreError,
		ZoneCounts: z.counts(),
	}
	for _, plan := range z.Plans {
		answer.Plans = append(answer.Plans, plan.Name)
	}
	if n, ok := keys[z.Name]; ok {
		answer.Keys = &n
	}
	for _, use := range z.Uses {
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
	if observed, ok := z.Store.Store.Store.(store.Observed); ok && z.CountsSlots() {
		held := observed.Stats().InUse[z.Name]
		c.InUse = &held
	}
	if slices.ContainsFunc(z.Uses, func(use *zone.Zone) bool { return use.Charge.Fields != nil }) {
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
	for _, use := range z.Uses {
		if text := use.Rollout(); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if i := slices.Index(all, ""); i >= 0 && len(all) > 1 {
		all[i] = "enforced"
	}
	return strings.Join(all, ", ")
}

// add adds the counts of others to those of a zone, even of those that define the zone in another way.
func add(z *adminapi.Zone, view *fleet.View) {
	for _, told := range view.Of(z.Name) {
		z.Add(&told.ZoneCounts)
	}
}
