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
	if c.zone != nil && !c.zone.hasNetworks() {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	zones := slices.DeleteFunc(c.zones(), func(z *runningZone) bool { return !z.hasNetworks() })
	return each(zones, (*runningZone).countNetworks), nil
}

// hasNetworks reports whether the keys of the zone have an address.
func (z *runningZone) hasNetworks() bool { return z.Template.HasAddress }

// share is the part of all requests from which on a network is listed.
const share = 0.01

// countNetworks returns the networks that the zone has counted. It begins to count them, if that is not done yet.
func (z *runningZone) countNetworks() adminapi.Networks {
	top, requests, since := z.Stats.Networks.Look(z.Template.Address).Top(share)
	answer := adminapi.Networks{Zone: z.Name, Since: since, Requests: requests, Networks: make([]adminapi.NetworkCount, len(top))}
	for i, n := range top {
		answer.Networks[i] = adminapi.NetworkCount{Network: n.Network.String(), Requests: n.Requests.AtLeast, Refused: n.Refused}
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
