package admin

import (
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/operate/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// recent is how long ago a request from a proxy still says something of the present.
const recent = 10 * time.Minute

// factsOf collects what is known of a zone without its store and the other instances. All are the zones of the config.
func factsOf(z *running.Zone, all []*running.Zone) doctor.Zone {
	facts := doctor.Zone{Zone: z.Show(nil), SinceLoaded: z.SinceLoaded()}
	for _, use := range z.Uses {
		facts.Matches, facts.Missed = facts.Matches || len(use.Matchers) > 0, facts.Missed+use.Missed.Count()
		facts.Served = max(facts.Served, use.Requests.Count())
		judged, charged, last := use.Judged.Read()
		facts.Judged, facts.Charged, facts.LastStatus = facts.Judged+judged, facts.Charged+charged, max(facts.LastStatus, last)
	}
	for _, other := range all {
		facts.Elsewhere = max(facts.Elsewhere, other.SinceLoaded())
		if other.Store.Store.Remote && z.ByDefault {
			facts.Shared = running.StoreName(other.Store)
		}
	}
	facts.Variable, facts.Networks = z.Template.Varies(), z.Template.ByNetwork()
	facts.Addresses = z.Template.HasAddress && z.Template.NumPlaceholders() == 1
	facts.Spread, facts.MissingKey = z.Stats.Keys.Spread(), z.MissingKey.Word
	facts.Blocks, facts.Warnings, facts.OneKey = len(z.Block) > 0, z.Warnings, z.Template.Meant(z.Key) != ""
	facts.Unlimited, facts.Results = !z.HasLimit(), z.CostsSinceLoaded()
	for _, use := range z.Uses {
		// Clients may write the field themselves, if only a few requests have it.
		if last := use.Forwarded.Last(); last != nil && use.Forwarded.IsProxy() && time.Since(last.At) < recent {
			looked, forwarded := use.Forwarded.Counts()
			facts.Forwarded = fmt.Sprintf("%s (%d of %d); %s", last.Found, forwarded, looked, last.Fix)
		}
		facts.Closed = facts.Closed || use.Policy != nil && use.Policy.Numbers.Events == 0
	}
	if z.Template.NumPlaceholders() > 0 {
		keyless, _ := z.Stats.Keys.Of(z.Template.Empty)
		facts.Keyless = keyless.Counts[topk.Requests]
	}
	return facts
}
