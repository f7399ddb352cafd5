package fleet

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// late is by how much an instance that is well may be late, and mostAge how old its report may be therefore.
	late    = 1500 * time.Millisecond
	mostAge = store.CountInterval + late

	// silentAfter is how old the report of an instance is that is not well.
	silentAfter = store.CountInterval + 2*late
)

// Member is an instance as the view has it.
type Member struct {
	adminapi.Instance
	Report *Report // nil: there is none that can be read, or has counts

	brief *Report // instead of Report, if nobody has looked yet
}

// View is a fleet as its reports show it.
type View struct {
	Members []Member // this instance first
	Notes   []string
}

// NewView makes the view of this instance, whose name and report are given, and of what the stores have of others.
func NewView(me string, mine *Report, stores ...[]store.Report) *View {
	v := &View{Members: []Member{{Report: mine, Instance: adminapi.Instance{ID: me, Name: mine.Name, State: adminapi.StateHere}}}}
	for _, reports := range stores {
		for i := range reports {
			if r := &reports[i]; r.Process != me {
				v.add(r)
			}
		}
	}
	for i := range v.Members {
		v.Members[i].describe(mine)
	}
	v.distinguish()
	slices.SortStableFunc(v.Members[1:], func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	v.share()
	return v
}

// add adds what a store has of another instance. One that shares several stores reports the same to each.
func (v *View) add(r *store.Report) {
	m := Member{Instance: adminapi.Instance{ID: r.Process, Name: r.Process, State: adminapi.StateMute, Age: r.Age.Seconds()}}
	if r.Text != "" {
		told, err := Decode(r.Text)
		switch {
		case err != nil:
			v.Notes = append(v.Notes, fmt.Sprintf("the report of %q is not used: %v", r.Process, err))
		case told.Now.IsZero():
			m.brief = told
		default:
			m.Report, m.State = told, adminapi.StateReports
			m.ClockAhead = told.Now.Sub(r.At).Seconds()
		}
	}
	switch {
	case r.Left || !r.Lives:
		m.State = adminapi.StateLeft
	case r.Text != "" && r.Age > silentAfter:
		m.State = adminapi.StateSilent
	}
	at := slices.IndexFunc(v.Members, func(other Member) bool { return other.ID == m.ID })
	if at < 0 {
		if m.State != adminapi.StateLeft || m.Report != nil {
			v.Members = append(v.Members, m)
		}
		return
	}
	known := &v.Members[at]
	switch {
	case m.Report == nil && known.Report != nil:
	case known.Report == nil, known.State == adminapi.StateLeft, m.State != adminapi.StateLeft && m.Age < known.Age:
		*known = m
	}
}

// distinguish adds to a name that several instances have, as containers may, the beginning of their IDs.
func (v *View) distinguish() {
	times := make(map[string]int)
	for _, m := range v.Members {
		times[m.Name]++
	}
	for i := range v.Members {
		if m := &v.Members[i]; times[m.Name] > 1 {
			m.Name += " " + m.ID[:min(6, len(m.ID))]
		}
	}
}

// describe fills in what the report says of the instance.
func (m *Member) describe(mine *Report) {
	r := cmp.Or(m.Report, m.brief)
	if r == nil {
		return
	}
	m.Name, m.Version, m.Since, m.Config = r.Name, r.Version, r.Since, r.Config
	m.Requests, m.Rate, m.Differs = r.Requests, r.Rate, differing(mine, r)
}

// differing returns the zones that two instances define differently, or that only one of them has.
func differing(a, b *Report) (names []string) {
	definitions := make(map[string]string)
	for _, z := range a.Zones {
		definitions[z.Name] = z.Definition
	}
	for _, z := range b.Zones {
		if other, has := definitions[z.Name]; other != z.Definition && (has || a.Omitted.Zones+b.Omitted.Zones == 0) {
			names = append(names, z.Name)
		}
		delete(definitions, z.Name)
	}
	if b.Omitted.Zones == 0 {
		names = slices.AppendSeq(names, maps.Keys(definitions))
	}
	slices.Sort(names)
	return names
}

// Doubt takes back what follows from reports that have not come: a store does not answer, or not in time.
func (v *View) Doubt() {
	for i := range v.Members {
		if m := &v.Members[i]; m.State != adminapi.StateHere && (m.Report == nil || m.Age > mostAge.Seconds()) {
			m.State, m.Share = adminapi.StateUnknown, 0
		}
	}
	v.share()
}

// serves reports whether the instance takes requests, as far as is known.
func (m *Member) serves() bool {
	return m.State == adminapi.StateHere || m.State == adminapi.StateReports
}

// share computes the parts of the load.
func (v *View) share() {
	var rate, requests float64
	for _, m := range v.Members {
		if m.serves() {
			rate, requests = rate+m.Rate, requests+float64(m.Requests)
		}
	}
	for i := range v.Members {
		switch m := &v.Members[i]; {
		case !m.serves():
		case rate > 0:
			m.Share = m.Rate / rate
		case requests > 0:
			m.Share = float64(m.Requests) / requests
		}
	}
}

// Misses reports whether the counts of an instance that is well are still to come, or what doctor finds there.
func (v *View) Misses(diagnoses bool) bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool {
		if m.State == adminapi.StateMute {
			return m.brief != nil && m.Age <= mostAge.Seconds()
		}
		return m.State == adminapi.StateReports && diagnoses && m.Report.Diagnosis == nil
	})
}

// Of yields what other instances have reported of a zone. Without a view there is nothing.
func (v *View) Of(zone string) iter.Seq[*Zone] {
	return func(yield func(*Zone) bool) {
		if v == nil {
			return
		}
		for _, m := range v.Members[1:] {
			if m.Report == nil {
				continue
			}
			i := slices.IndexFunc(m.Report.Zones, func(z Zone) bool { return z.Name == zone })
			if i >= 0 && !yield(&m.Report.Zones[i]) {
				return
			}
		}
	}
}
