package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
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
	mine := fleet.Zone{Name: z.Name, Tops: z.tops(max(listed, n))}
	all := []adminapi.Top{mine.Top(adminapi.Kinds[by])}
	for _, told := range view.Of(z.Name) {
		all = append(all, told.Top(adminapi.Kinds[by]))
	}
	sum := fleet.Merge(all, n)
	for i := range sum.Keys {
		sum.Keys[i].KeyText = z.split(sum.Keys[i].KeyText)
	}
	return sum
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
