package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// This file adds up what all instances have counted.

// add adds the counts of others to those of a zone, even of those that define the zone in another way.
func add(z *adminapi.Zone, view *fleet.View) {
	for _, told := range view.Of(z.Name) {
		z.Add(&told.ZoneCounts)
	}
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
