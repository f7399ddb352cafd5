package running

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Zone is a zone of the newest config.
type Zone struct {
	*trial.Defined
	before counted
}

// Zones returns the zones of the newest config that runs, sorted by name.
func Zones() []*Zone { return Current().Zones() }

// Zones returns the zones of a config, sorted by name.
func (c *Config) Zones() (zones []*Zone) {
	for name, z := range trial.Zones(c.All()) {
		zones = append(zones, &Zone{z, c.before[name]})
	}
	slices.SortFunc(zones, func(a, b *Zone) int { return strings.Compare(a.Name, b.Name) })
	return zones
}

// Show returns the zone as the admin API shows it, with the numbers of keys of zones in memory.
func (z *Zone) Show(keys map[string]int64) adminapi.Zone {
	answer := adminapi.Zone{
		Name: z.Name, Limit: z.Description, Rollout: z.Rollouts(), Key: z.Key, KeyForm: z.Template.Form(), Store: StoreName(z.Store), OnStoreError: z.OnStoreError,
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
func (z *Zone) counts() (c adminapi.ZoneCounts) {
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

// Rollouts says how far the limit is enforced. Handlers may differ in that.
func (z *Zone) Rollouts() string {
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

// definition returns the limit and the key of the zone for people. Instances that share a store must agree on these, so it differs
// for different ones.
func (z *Zone) definition() string {
	text := z.Description
	if z.Key != "" {
		text += " by " + z.Template.Form()
	}
	if p := z.Template.Prefixes; z.Template.HasAddress && (p.IPv4 != 32 || p.IPv6 != 64) {
		text += fmt.Sprintf(" (ipv4_prefix %d, ipv6_prefix %d)", p.IPv4, p.IPv6)
	}
	return text
}

// SinceLoaded returns how many requests the zone has met since the config was loaded.
func (z *Zone) SinceLoaded() (n uint64) {
	for _, of := range z.Stats.Totals() {
		n += of
	}
	return n - z.before.requests
}

// CostsSinceLoaded counts responses that should say what their requests cost, by what happened to that, since the config was
// loaded.
func (z *Zone) CostsSinceLoaded() [stats.CostResults]uint64 {
	counts, _ := z.Stats.Costs.Read()
	for result, before := range z.before.costs {
		counts[result] -= before
	}
	return counts
}

// HasLimit reports whether a request can have a limit.
func (z *Zone) HasLimit() bool { return len(z.Rules()) > 0 }

// MayTry reports whether the zone is only tried out on a key. With several, as those of a network, or one that is not
// known, it reports whether that may be so.
func (z *Zone) MayTry(key string, several bool) bool {
	return !slices.ContainsFunc(z.Uses, func(use *zone.Zone) bool {
		return !use.IsDryRun(key) && (!several || use.Enforce == nil || *use.Enforce == 100)
	})
}

// Split adds the parts of a key of another instance.
func (z *Zone) Split(k adminapi.KeyText) adminapi.KeyText {
	text, err := k.Bytes()
	if err != nil {
		return k
	}
	return peek.KeyText(z.Template, text, max(len(text), k.Truncated))
}
