package admin

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// facts collects what is known of a zone. All are the zones of the config.
func (z *runningZone) facts(all []*runningZone, of *doctor.Store, others *peers) doctor.Zone {
	facts := doctor.Zone{
		Name: z.Name, Store: of.Name, OnStoreError: z.OnStoreError, Silent: of.Silent(),
		Rollout: z.rollout(), DryRun: !slices.ContainsFunc(z.uses, (*zone.Zone).Enforces),
		Variable: z.Template.Varies(), Addresses: onlyAddresses(z.Template), Networks: z.Template.ByNetwork(), Spread: z.Stats.Keys.Spread(),
		Key: z.Key, KeyInWords: z.KeyInWords(), MissingKey: z.MissingKey.Word, Definition: z.definition(), Blocks: len(z.Block) > 0, DefinedOtherwise: others.differOn(z), Warnings: z.warnings,
	}
	facts.Costs, _ = z.Stats.Costs.Read()
	for result, before := range z.before.costs {
		facts.Costs[result] -= before
	}
	facts.Exempts, facts.For = len(z.Exempt) > 0, time.Since(processStart)
	z.meets(&facts, all)
	z.judges(&facts)
	z.counts(&facts)
	rules := z.Rules()
	facts.Unlimited = len(rules) == 0
	for _, use := range z.uses {
		if last := use.Forwarded.Last(); last != nil {
			looked, forwarded := use.Forwarded.Counts()
			facts.Forwarded = &doctor.Forwarded{
				Field: last.Field, Found: last.Found, Fix: last.Fix, Few: !use.Forwarded.IsProxy(), Ago: time.Since(last.At), Count: forwarded, Of: looked,
			}
		}
		if p := use.Policy; p != nil && p.Numbers.Events == 0 {
			facts.Closed = true
		}
	}
	if z.Template.NumPlaceholders() > 0 {
		counts, _ := z.Stats.Keys.Counts(z.Template.Empty)
		facts.Keyless = counts[topk.Requests].AtLeast
	}
	return facts
}

// judges collects what charge has judged.
func (z *runningZone) judges(facts *doctor.Zone) {
	for _, use := range z.uses {
		all, charged, last := use.Judged.Read()
		facts.Judged, facts.Charged, facts.LastStatus = facts.Judged+all, facts.Charged+charged, max(facts.LastStatus, last)
	}
}

// counts finds out whether the zone counts in this process, and others do not.
func (z *runningZone) counts(facts *doctor.Zone) {
	for _, s := range runningStores() {
		if s.store.Store.Remote && z.handlers[0].StoreByDefault {
			facts.Alone, facts.Shared = true, storeName(s.store)
		}
	}
}

// onlyAddresses reports whether a key has no placeholder but the client's address.
func onlyAddresses(t *key.Template) bool {
	return t.HasAddress && t.NumPlaceholders() == 1
}

// sinceLoaded returns how many requests the zone has met since the config was loaded.
func (z *runningZone) sinceLoaded() (n uint64) {
	for _, of := range z.Stats.Totals() {
		n += of
	}
	return n - z.before.requests
}
