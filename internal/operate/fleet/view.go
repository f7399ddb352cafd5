package fleet

import (
	"cmp"
	"fmt"
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
	Report *Report // nil: there is none that can be read
}

// View is a fleet as its reports show it.
type View struct {
	Members []Member // this instance first
	Notes   []string
}

// NewView makes the view of this instance, whose name and report are given, and of what the stores have of others.
func NewView(me string, mine *Report, stores ...[]store.Report) *View {
	v := &View{Members: []Member{{Report: mine, Instance: adminapi.Instance{ID: me, State: adminapi.StateHere}}}}
	v.Members[0].describe(mine)
	for _, r := range slices.Concat(stores...) {
		if r.Process != me {
			v.add(&r)
		}
	}
	slices.SortStableFunc(v.Members[1:], func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range v.Members {
		if m.Report != nil && m.Report.Omitted != "" {
			v.Notes = append(v.Notes, fmt.Sprintf("%s has no room to report all: %s are missing", m.Name, m.Report.Omitted))
		}
	}
	return v
}

// add adds what a store has of another instance. One that shares several stores reports the same to each.
func (v *View) add(r *store.Report) {
	m := Member{Instance: adminapi.Instance{ID: r.Process, Name: r.Process, Age: r.Age.Seconds()}}
	if r.Text != "" {
		var err error
		if m.Report, err = Decode(r.Text); err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("the report of %q is not used: %v", r.Process, err))
		}
	}
	m.State = m.stateBy(r)
	m.describe(v.Members[0].Report)
	switch at := slices.IndexFunc(v.Members, func(other Member) bool { return other.ID == m.ID }); {
	case at >= 0 && m.outdoes(&v.Members[at]):
		v.Members[at] = m
	case at < 0 && (m.State != adminapi.StateLeft || m.Counts()):
		v.Members = append(v.Members, m)
	}
}

// stateBy returns the state of the instance of which a store has this.
func (m *Member) stateBy(r *store.Report) string {
	switch {
	case r.Left || !r.Lives:
		return adminapi.StateLeft
	case r.Text != "" && r.Age > silentAfter:
		return adminapi.StateSilent
	case m.Counts():
		return adminapi.StateReports
	}
	return adminapi.StateMute
}

// outdoes reports whether more is known of the instance than by another store.
func (m *Member) outdoes(known *Member) bool {
	if !m.Counts() || !known.Counts() {
		return !known.Counts()
	}
	return known.State == adminapi.StateLeft || m.State != adminapi.StateLeft && m.Age < known.Age
}

// Counts reports whether the instance has reported what it counts.
func (m *Member) Counts() bool { return m.Report != nil && !m.Report.Now.IsZero() }

// describe fills in what the report says of the instance, compared with that of the one that answers.
func (m *Member) describe(mine *Report) {
	if r := m.Report; r != nil {
		m.Name, m.Requests, m.Rate, m.Trouble, m.Differs = r.Name, r.Requests, r.Rate, r.Trouble, differing(mine, r)
	}
}

// differing returns the zones that two instances define differently, or that only one of them has.
func differing(a, b *Report) (names []string) {
	definitions := make(map[string]string)
	for _, z := range a.Zones {
		definitions[z.Name] = z.Definition
	}
	for _, z := range b.Zones {
		if other, has := definitions[z.Name]; other != z.Definition && (has || a.Omitted+b.Omitted == "") {
			names = append(names, z.Name)
		}
		delete(definitions, z.Name)
	}
	if b.Omitted == "" {
		names = slices.AppendSeq(names, maps.Keys(definitions))
	}
	slices.Sort(names)
	return names
}

// Instances returns the instances. Without a view there are none.
func (v *View) Instances() (all []adminapi.Instance) {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		all = append(all, v.Members[i].Instance)
	}
	return all
}

// Misses reports whether the counts of an instance that is well are still to come.
func (v *View) Misses() bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool {
		return m.State == adminapi.StateMute && m.Report != nil && m.Age <= mostAge.Seconds()
	})
}

// Of returns what other instances have reported of a zone. Without a view that is nothing.
func (v *View) Of(zone string) (all []*Zone) {
	if v == nil {
		return nil
	}
	for _, m := range v.Members[1:] {
		if m.Report == nil {
			continue
		}
		for i := range m.Report.Zones {
			if z := &m.Report.Zones[i]; z.Name == zone {
				all = append(all, z)
			}
		}
	}
	return all
}

// id tells keys apart.
type id struct {
	text, base64 string
	length       int
}

// Merge adds up the counts of the keys that each of several instances lists, once or twice, and returns up to n keys: those with the
// most requests, or with the most refusals. What an instance has counted of a key that it does not list is not in the sum.
func Merge(instances [][]adminapi.KeyCount, refused bool, n int) []adminapi.KeyCount {
	type place struct{ at, last int } // in the sum, and the instance that was added last
	sum, places := []adminapi.KeyCount{}, make(map[id]place)
	for i, listed := range instances {
		for _, k := range listed {
			of := id{k.Key, k.KeyBase64, k.Truncated}
			p, known := places[of]
			if !known {
				p.at, sum = len(sum), append(sum, k)
			} else if s := &sum[p.at]; p.last < i {
				s.Plan, s.Requests, s.Refused = cmp.Or(k.Plan, s.Plan), s.Requests+k.Requests, s.Refused+k.Refused
			}
			places[of] = place{p.at, i}
		}
	}
	sum = slices.DeleteFunc(sum, func(k adminapi.KeyCount) bool { return k.Count(refused) == 0 })
	slices.SortStableFunc(sum, func(a, b adminapi.KeyCount) int { return cmp.Compare(b.Count(refused), a.Count(refused)) })
	return sum[:min(n, len(sum))]
}
