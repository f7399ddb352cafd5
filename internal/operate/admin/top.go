package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of zones.
func showTop(c *adminCall) (any, error) {
	by, known := map[string]topk.Kind{"": topk.Requests, "requests": topk.Requests, "refused": topk.Refused}[c.query.Get("by")]
	if !known {
		return nil, adminError(badRequest, "by must be requests or refused, got %q", c.query.Get("by"))
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	if err != nil {
		return nil, err
	}
	return each(c.zones(), func(z *runningZone) adminapi.Top { return z.sumTop(c.view, by, int(n)) }), nil
}

// top returns up to n keys: without any refusals, none if it is by these.
func (z *runningZone) top(n int, by topk.Kind) adminapi.Top {
	entries, since := z.Stats.Keys.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: make([]adminapi.KeyCount, len(entries))}
	for i, e := range entries {
		answer.Keys[i] = adminapi.KeyCount{
			KeyText: keyText(z.Template, e.Key, e.Length), Plan: e.Plan, DryRun: z.mayTry(e.Key, e.Length > len(e.Key)),
			Requests: e.Counts[topk.Requests].AtLeast, Refused: e.Counts[topk.Refused].AtLeast,
		}
	}
	return answer
}

// showNetworks shows the networks with the most requests, of zones with addresses in their keys.
func showNetworks(c *adminCall) (any, error) {
	zones := slices.DeleteFunc(c.zones(), func(z *runningZone) bool { return !z.Template.HasAddress })
	if c.zone != nil && len(zones) == 0 {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	return each(zones, func(z *runningZone) adminapi.Top { return z.countNetworks(int(n)) }), err
}

// share is the part of all requests from which on a network is listed.
const share = 0.01

// countNetworks returns up to n networks that the zone has counted. It begins to count them, if that is not done yet. They have
// at least that share of all requests, without those of networks within them that are listed, too. All such networks are listed, but
// for those within a listed one all over which its requests are spread, and those with less than ten requests.
func (z *runningZone) countNetworks(n int) adminapi.Top {
	top, _, since := z.Stats.Networks.Look(z.Template.Address).Top(share)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: []adminapi.KeyCount{}}
	for _, of := range top[:min(n, len(top))] {
		answer.Keys = append(answer.Keys, adminapi.KeyCount{KeyText: adminapi.KeyText{Key: of.Network.String()}, Requests: of.Requests.AtLeast, Refused: of.Refused})
	}
	return answer
}

// sumTop adds up the lists of the most frequent keys. A key that is frequent in the sum may have a low place in each of them.
func (z *runningZone) sumTop(view *fleet.View, by topk.Kind, n int) adminapi.Top {
	if view == nil {
		return z.top(n, by)
	}
	sum, other := z.top(max(listed, n), by), z.top(max(listed, n), 1-by)
	lists := [][]adminapi.KeyCount{slices.Concat(sum.Keys, other.Keys)}
	for _, told := range view.Of(z.Name) {
		lists = append(lists, slices.Concat(told.Tops[:]...))
		if sum.Since.IsZero() || !told.Since.IsZero() && told.Since.Before(sum.Since) {
			sum.Since = told.Since
		}
	}
	sum.Keys = fleet.Merge(lists, by == topk.Refused, n)
	for i := range sum.Keys {
		sum.Keys[i].KeyText = z.split(sum.Keys[i].KeyText)
	}
	return sum
}
