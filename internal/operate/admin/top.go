package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
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
	return z.frequent(z.Stats.Keys, n, by, func(e *topk.Entry, k *adminapi.KeyCount) {
		k.KeyText, k.DryRun = peek.KeyText(z.Template, e.Key, e.Length), z.mayTry(e.Key, e.Length > len(e.Key))
	})
}

func (z *runningZone) frequent(counts *topk.Recent, n int, by topk.Kind, name func(*topk.Entry, *adminapi.KeyCount)) adminapi.Top {
	entries, since := counts.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: make([]adminapi.KeyCount, len(entries))}
	for i, e := range entries {
		answer.Keys[i] = adminapi.KeyCount{Plan: e.Plan, Requests: e.Counts[topk.Requests], Refused: e.Counts[topk.Refused]}
		name(&e, &answer.Keys[i])
	}
	return answer
}

// showNetworks shows the networks with the most requests, of zones with addresses in their keys. It begins to count them, if that is
// not done yet.
func showNetworks(c *adminCall) (any, error) {
	zones := slices.DeleteFunc(c.zones(), func(z *runningZone) bool { return !z.Template.HasAddress })
	if c.zone != nil && len(zones) == 0 {
		return nil, adminError(badRequest, "the keys of zone %q have no address: it has no networks", c.zone.Name)
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	return each(zones, func(z *runningZone) adminapi.Top {
		return z.frequent(z.Stats.Networks.Look(stats.TopSpan, z.Template.Address), int(n), topk.Requests, func(e *topk.Entry, k *adminapi.KeyCount) { k.Key = e.Key })
	}), err
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
