package admin

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// facts collects what is known of a zone without its store and the other instances. All are the zones of the config.
func (z *runningZone) facts(all []*runningZone) doctor.Zone {
	facts := doctor.Zone{Zone: z.describe(nil), SinceLoaded: z.sinceLoaded()}
	for _, use := range z.uses {
		facts.Matches = facts.Matches || len(use.Matchers) > 0
		judged, charged, last := use.Judged.Read()
		facts.Judged, facts.Charged, facts.LastStatus = facts.Judged+judged, facts.Charged+charged, max(facts.LastStatus, last)
	}
	for _, other := range all {
		if other.store.Store.Remote && z.handlers[0].StoreByDefault {
			facts.Shared = storeName(other.store)
		}
	}
	if facts.SinceLoaded == 0 {
		z.unmet(&facts, all)
	}
	facts.DryRun = !slices.ContainsFunc(z.uses, (*zone.Zone).Enforces)
	facts.Variable, facts.Networks = z.Template.Varies(), z.Template.ByNetwork()
	facts.Addresses = z.Template.HasAddress && z.Template.NumPlaceholders() == 1
	facts.Spread, facts.MissingKey, facts.KeyInWords = z.Stats.Keys.Spread(), z.MissingKey.Word, z.Template.Form()
	facts.Blocks, facts.Warnings, facts.OneKey = len(z.Block) > 0, z.warnings, z.Template.Meant(z.Key) != ""
	facts.Unlimited = !hasLimit(z)
	facts.Results, _ = z.Stats.Costs.Read()
	for result, before := range z.before.costs {
		facts.Results[result] -= before
	}
	for _, use := range z.uses {
		if last := use.Forwarded.Last(); last != nil {
			looked, forwarded := use.Forwarded.Counts()
			facts.Forwarded = &doctor.Forwarded{
				Found: last.Found, Fix: last.Fix, Few: !use.Forwarded.IsProxy(), Ago: time.Since(last.At),
				Count: forwarded, Of: looked,
			}
		}
		facts.Closed = facts.Closed || use.Policy != nil && use.Policy.Numbers.Events == 0
	}
	if z.Template.NumPlaceholders() > 0 {
		keyless, _ := z.Stats.Keys.Of(z.Template.Empty)
		facts.Keyless = keyless.Counts[topk.Requests].AtLeast
	}
	return facts
}
