package running

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// top returns up to n keys: without any refusals, none if it is by these.
func (z *Zone) top(n int, by topk.Kind) adminapi.Top {
	return z.frequent(z.Stats.Keys, n, by, func(e *topk.Entry, k *adminapi.KeyCount) {
		k.KeyText, k.DryRun = peek.KeyText(z.Template, e.Key, e.Length), z.MayTry(e.Key, e.Length > len(e.Key))
	})
}

// TopNetworks returns up to n networks with the most requests. It begins to count them, if that is not done yet.
func (z *Zone) TopNetworks(n int) adminapi.Top {
	counts := z.Stats.Networks.Look(stats.TopSpan, z.Template.Address)
	return z.frequent(counts, n, topk.Requests, func(e *topk.Entry, k *adminapi.KeyCount) { k.Key = e.Key })
}

func (z *Zone) frequent(counts *topk.Recent, n int, by topk.Kind, name func(*topk.Entry, *adminapi.KeyCount)) adminapi.Top {
	entries, since := counts.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: make([]adminapi.KeyCount, len(entries))}
	for i, e := range entries {
		answer.Keys[i] = adminapi.KeyCount{Plan: e.Plan, Requests: e.Counts[topk.Requests], Refused: e.Counts[topk.Refused]}
		name(&e, &answer.Keys[i])
	}
	return answer
}

// Top returns up to n keys of this instance, or of those of a view. Then it adds up lists of the most frequent keys: one that is
// frequent in the sum may have a low place in each of them.
func (z *Zone) Top(view *fleet.View, n int, by topk.Kind) adminapi.Top {
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
		sum.Keys[i].KeyText = z.Split(sum.Keys[i].KeyText)
	}
	return sum
}
