package admin

import (
	"encoding/json"
	"iter"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// This file adds up what all instances have counted.

// summed returns what adds the reports of others to the answer of this instance.
func summed[T any](add func(c *adminCall, mine *T, view *fleet.View)) func(*adminCall, json.RawMessage, *fleet.View) (any, error) {
	return func(c *adminCall, answered json.RawMessage, view *fleet.View) (any, error) {
		mine := new(T)
		if err := json.Unmarshal(answered, mine); err != nil {
			return nil, err
		}
		add(c, mine, view)
		return mine, nil
	}
}

// reportedOf yields what other instances have reported of a zone. Without a view there is nothing.
func reportedOf(zone string, view *fleet.View) iter.Seq[*fleet.Zone] {
	return func(yield func(*fleet.Zone) bool) {
		if view == nil {
			return
		}
		for _, m := range view.Members[1:] {
			if m.Report == nil {
				continue
			}
			i := slices.IndexFunc(m.Report.Zones, func(z fleet.Zone) bool { return z.Name == zone })
			if i >= 0 && !yield(&m.Report.Zones[i]) {
				return
			}
		}
	}
}

// sumZone adds the counts of others, even of those that define the zone in another way.
func sumZone(_ *adminCall, z *adminapi.Zone, view *fleet.View) {
	for told := range reportedOf(z.Name, view) {
		for name, n := range told.Totals {
			z.Totals[name] += n
		}
		for name, n := range told.Costs {
			if z.Costs == nil {
				z.Costs = make(map[string]uint64)
			}
			z.Costs[name] += n
		}
		z.NearLimit += told.Near
		z.CostSum += told.CostSum
		z.Rate, z.InUse = plus(z.Rate, told.Rate), plus(z.InUse, told.InUse)
	}
}

func sumZones(c *adminCall, zones *[]adminapi.Zone, view *fleet.View) {
	for i := range *zones {
		sumZone(c, &(*zones)[i], view)
	}
}

// plus adds two numbers of which one may not be known.
func plus[N int64 | float64](a, b *N) *N {
	if a == nil {
		return b
	}
	sum := *a
	if b != nil {
		sum += *b
	}
	return &sum
}

// sumTop adds up the lists of the most frequent keys of the zone in the path.
func sumTop(c *adminCall, _ json.RawMessage, view *fleet.View) (any, error) {
	by, n, err := c.readTop()
	if err != nil {
		return nil, err
	}
	return c.zone.sumTop(view, by, n), nil
}

func sumTops(c *adminCall, _ json.RawMessage, view *fleet.View) (any, error) {
	by, n, err := c.readTop()
	if err != nil {
		return nil, err
	}
	tops := []adminapi.Top{}
	for _, z := range runningZones() {
		tops = append(tops, z.sumTop(view, by, n))
	}
	return tops, nil
}

// sumTop adds up the lists of the most frequent keys. A key that is frequent in the sum may have a low place in each of them.
func (z *runningZone) sumTop(view *fleet.View, by topk.Kind, n int) adminapi.Top {
	all := []fleet.Lists{{z.top(max(listed, n), by), z.top(max(listed, n), topk.Requests)}}
	for told := range reportedOf(z.Name, view) {
		if told.Keys == nil {
			continue
		}
		list := told.Keys.By(z.Name, sortNames[by], listed)
		for i := range list.Keys {
			list.Keys[i].KeyText = z.split(list.Keys[i].KeyText)
		}
		all = append(all, fleet.Lists{list, told.Keys.By(z.Name, sortNames[topk.Requests], listed)})
	}
	return fleet.Merge(all, n)
}

// sumKey adds what others have lately counted of a key whose state is in the store.
func sumKey(c *adminCall, k *adminapi.Key, view *fleet.View) {
	for told := range reportedOf(c.zone.Name, view) {
		of, n := told.Keys.Of(&k.KeyText)
		if n == nil || of.Since == nil {
			continue
		}
		sum := adminapi.Lately{Since: *of.Since, Plan: n.Plan, Requests: n.Requests, Refused: n.Refused, DryRun: n.DryRun}
		if mine := k.Lately; mine != nil {
			if mine.Since.Before(sum.Since) {
				sum.Since = mine.Since
			}
			if mine.Plan != "" {
				sum.Plan = mine.Plan
			}
			sum.Requests, sum.Refused, sum.DryRun = sum.Requests+mine.Requests, sum.Refused+mine.Refused, sum.DryRun+mine.DryRun
		}
		k.Lately = &sum
	}
}
