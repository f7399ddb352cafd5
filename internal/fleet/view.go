package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// Fresh is how old the report of an instance may be that is well, and silentAfter how old that of one is which is not.
	Fresh       = 2 * store.ReportInterval
	silentAfter = 3 * store.ReportInterval

	// late is by how much an instance that is well may be late, and mostAge how old its last report may be therefore.
	late    = store.ReportInterval
	mostAge = store.ReportInterval * 3 / 2
)

// Member is an instance as the view has it.
type Member struct {
	adminapi.Instance
	Report *Report // nil: there is none that can be read

	counted time.Duration // how long ago
}

// View is a fleet as its reports show it.
type View struct {
	Members []Member // this instance first
	Notes   []string
}

// NewView makes the view of this instance, whose name and report are given, and of what is on the boards of the stores.
func NewView(me string, mine *Report, boards ...[]store.Report) *View {
	v := &View{Members: []Member{{Report: mine, Instance: adminapi.Instance{ID: me, Name: mine.Name, State: adminapi.StateHere}}}}
	for _, board := range boards {
		for i := range board {
			if r := &board[i]; r.Process != me {
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

// add adds what a store has of another instance. One that shares several stores has a report in each.
func (v *View) add(r *store.Report) {
	m := Member{Instance: adminapi.Instance{ID: r.Process, Name: r.Process, State: adminapi.StateMute, Age: r.Age.Seconds()}, counted: r.Counted}
	if r.Text != "" {
		var err error
		if m.Report, err = Decode(r.Text, store.MaxReport); err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("the report of %q is not used: %v", r.Process, err))
		}
	}
	switch {
	case r.Left || !r.Lives:
		m.State = adminapi.StateLeft
	case r.Text != "" && r.Age > silentAfter:
		m.State = adminapi.StateSilent
	case m.Report != nil:
		m.State = adminapi.StateReports
	}
	if m.Report != nil {
		m.ClockAhead = float64(m.Report.Now-r.Written.UnixMilli()) / 1000
	}
	at := slices.IndexFunc(v.Members, func(other Member) bool { return other.ID == m.ID })
	if at < 0 {
		if m.State == adminapi.StateLeft && m.Report == nil {
			return
		}
		v.Members = append(v.Members, m)
		return
	}
	known := &v.Members[at]
	switch {
	case m.Report == nil:
	case known.Report == nil:
		*known = m
	default:
		known.Report.addStore(m.Report)
		if m.Age < known.Age {
			known.Age, known.State = m.Age, m.State
		}
	}
}

// addStore adds what the same instance reports to another store: its zones are others.
func (r *Report) addStore(other *Report) {
	isNew := false
	for _, z := range other.Zones {
		if !slices.ContainsFunc(r.Zones, func(known Zone) bool { return known.Name == z.Name }) {
			r.Zones, isNew = append(r.Zones, z), true
		}
	}
	for _, s := range other.Stores {
		if !slices.ContainsFunc(r.Stores, func(known adminapi.Store) bool { return known.Name == s.Name }) {
			r.Stores = append(r.Stores, s)
		}
	}
	if !isNew { // a store that has two sets of options: both learn all
		return
	}
	r.Requests, r.Rate, r.Now = r.Requests+other.Requests, r.Rate+other.Rate, max(r.Now, other.Now)
	r.Decisions, r.Skipped = append(r.Decisions, other.Decisions...), r.Skipped+other.Skipped
	r.Omitted.Keys, r.Omitted.Lists = r.Omitted.Keys+other.Omitted.Keys, r.Omitted.Lists+other.Omitted.Lists
	r.Omitted.Zones, r.Omitted.Findings = r.Omitted.Zones+other.Omitted.Zones, max(r.Omitted.Findings, other.Omitted.Findings)
	r.Omitted.Networks += other.Omitted.Networks
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
	r := m.Report
	if r == nil {
		return
	}
	m.Name, m.Version, m.Since, m.Config = r.Name, r.Version, time.UnixMilli(r.Since), r.Config
	m.Requests, m.Rate, m.Omitted = r.Requests, r.Rate, r.Omitted.String()
	m.Differs = differing(mine, r)
}

// differing returns the zones that two instances define differently, or that only one of them has.
func differing(a, b *Report) (names []string) {
	digests := make(map[string]string)
	for _, z := range a.Zones {
		digests[z.Name] = z.Digest
	}
	for _, z := range b.Zones {
		if digests[z.Name] != z.Digest && b.Omitted.Zones+a.Omitted.Zones == 0 || digests[z.Name] != "" && digests[z.Name] != z.Digest {
			names = append(names, z.Name)
		}
		delete(digests, z.Name)
	}
	if b.Omitted.Zones == 0 {
		for name := range digests {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Doubt takes back what follows from reports that have not come: a store does not answer, or not in time.
func (v *View) Doubt() {
	for i := range v.Members {
		if m := &v.Members[i]; m.State != adminapi.StateHere && (m.Report == nil || m.Age > Fresh.Seconds()) {
			m.State, m.Share = adminapi.StateUnknown, 0
		}
	}
	v.share()
}

// Serves reports whether the instance takes requests, as far as is known.
func (m *Member) Serves() bool {
	return m.State == adminapi.StateHere || m.State == adminapi.StateReports
}

// share computes the parts of the load.
func (v *View) share() {
	var rate, requests float64
	for _, m := range v.Members {
		if m.Serves() {
			rate, requests = rate+m.Rate, requests+float64(m.Requests)
		}
	}
	for i := range v.Members {
		switch m := &v.Members[i]; {
		case !m.Serves():
		case rate > 0:
			m.Share = m.Rate / rate
		case requests > 0:
			m.Share = float64(m.Requests) / requests
		}
	}
}

// Looker is a look at a fleet that waits for reports.
type Looker struct {
	Wish   string        // that the reports have to answer; empty: none
	Waited time.Duration // since the wish is known to others at the earliest
	Looked time.Duration // since they can know at the earliest that somebody looks

	// Told reports whether a report has what the wish is for, if many reports have it while the wish is known; nil: only one has.
	Told func(*Report) bool

	// Mute has the IDs of instances that are known to report nothing.
	Mute map[string]bool
}

// Misses reports whether there is an instance whose report is still to come. Nobody waits for one that is overdue.
func (v *View) Misses(l *Looker) bool {
	return slices.ContainsFunc(v.Members, func(m Member) bool {
		switch {
		case m.State == adminapi.StateHere || m.State == adminapi.StateLeft || m.State == adminapi.StateMute && l.Mute[m.ID]:
			return false
		case m.State == adminapi.StateReports && m.Age <= mostAge.Seconds():
			return l.Wish != "" && !m.Answers(l)
		case m.State == adminapi.StateReports && m.Age <= Fresh.Seconds() && l.Wish == "":
			return false
		}
		// It learns that somebody looks when it is counted, and reports then at once.
		return m.counted <= store.CountInterval+late && m.counted+late >= l.Looked
	})
}

// Answers reports whether the report has what a look wishes. What doctor has found for another look will do if it has begun
// later, because instances hear one wish at a time.
func (m *Member) Answers(l *Looker) bool {
	r := m.Report
	if l.Told != nil {
		return l.Told(r)
	}
	began := time.Duration(m.Age*float64(time.Second)) + time.Duration(r.Diagnosed)*time.Millisecond
	return r.Wish == l.Wish || r.Diagnosis != nil && r.Diagnosed > 0 && began < l.Waited
}

// Muted returns the IDs of the instances that have not reported.
func (v *View) Muted() map[string]bool {
	mute := make(map[string]bool)
	for _, m := range v.Members {
		if m.State == adminapi.StateMute {
			mute[m.ID] = true
		}
	}
	return mute
}
