package admin

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// This file adds up what all instances have counted.

// add adds the counts of others to those of a zone, even of those that define the zone in another way.
func add(z *adminapi.Zone, view *fleet.View) {
	for told := range view.Of(z.Name) {
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

// sumTop adds up the lists of the most frequent keys. A key that is frequent in the sum may have a low place in each of them.
func (z *runningZone) sumTop(view *fleet.View, by topk.Kind, n int) adminapi.Top {
	if view == nil {
		return z.top(n, by)
	}
	all := []*fleet.Keys{z.keys(max(listed, n))}
	for told := range view.Of(z.Name) {
		if told.Keys != nil {
			all = append(all, told.Keys)
		}
	}
	sum := fleet.Merge(all, z.Name, sortNames[by], n)
	for i := range sum.Keys {
		sum.Keys[i].KeyText = z.split(sum.Keys[i].KeyText)
	}
	return sum
}

// addLately adds what others have lately counted of a key whose state is in the store.
func addLately(k *adminapi.Key, view *fleet.View) {
	for told := range view.Of(k.Zone) {
		n := told.Keys.Of(&k.KeyText)
		if n == nil {
			continue
		}
		if k.Lately == nil {
			k.Lately = &adminapi.Lately{Since: told.Keys.Since}
		}
		sum := k.Lately
		if told.Keys.Since.Before(sum.Since) {
			sum.Since = told.Keys.Since
		}
		sum.Plan = cmp.Or(sum.Plan, n.Plan)
		sum.Requests, sum.Refused, sum.DryRun = sum.Requests+n.Requests, sum.Refused+n.Refused, sum.DryRun+n.DryRun
	}
}

// joined returns what each instance says, with its name if there are several.
func joined[T any](view *fleet.View, mine []T, told func(*fleet.Member) []T, name func(*T) *string) (all []T) {
	if view == nil || len(view.Members) < 2 {
		return mine
	}
	for i := range view.Members {
		m, of := &view.Members[i], mine
		if m.State != adminapi.StateHere && m.Report == nil {
			continue
		} else if m.State != adminapi.StateHere {
			of = told(m)
		}
		for _, v := range of {
			*name(&v) = m.Name
			all = append(all, v)
		}
	}
	return all
}

// joinFindings returns what comparing the instances finds, and what each has found. What one has found that has left or is
// silent is old.
func joinFindings(view *fleet.View, mine []adminapi.Finding) []adminapi.Finding {
	all := joined(view, mine, func(m *fleet.Member) []adminapi.Finding {
		if m.State != adminapi.StateReports || m.Report.Diagnosis == nil {
			return nil
		}
		return m.Report.Diagnosis.Findings
	}, func(f *adminapi.Finding) *string { return &f.Instance })
	if view != nil && len(view.Members) > 1 {
		all = slices.Concat([]adminapi.Finding{}, compareMembers(view), all)
	}
	slices.SortStableFunc(all, adminapi.WorseFirst)
	return all
}
