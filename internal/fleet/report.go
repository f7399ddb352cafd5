// Package fleet has what an instance tells the others of its fleet while somebody looks, and what follows from the reports
// of all. Reports come from a store that others may write to, so nothing in them is believed before [Decode] has checked it.
package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// form is the version of reports. Fields that are new in a form do not change it, because others ignore them.
const form = 1

// Report is what an instance tells about itself. Times are in milliseconds of Unix time, by its own clock.
type Report struct {
	Form    int    `json:"form"`
	Name    string `json:"name"`    // for people
	Version string `json:"version"` // of the module
	Config  string `json:"config"`  // the same for instances that define all zones alike
	Since   int64  `json:"since"`   // when the process began
	Now     int64  `json:"now"`

	// Requests are those in all zones of shared stores, and Rate is how many come in a second.
	Requests uint64  `json:"requests"`
	Rate     float64 `json:"rate"`

	Zones  []Zone           `json:"zones"` // those with the most requests first
	Stores []adminapi.Store `json:"stores"`

	// Decisions is a sample of those since the report before, and Skipped how many are not in it.
	Decisions []adminapi.Decision `json:"decisions,omitempty"`
	Skipped   uint64              `json:"skipped,omitempty"`

	// Diagnosis is what doctor has found here, if people who look wish to know. Wish is their wish. Diagnosed is how many
	// milliseconds before the report doctor has begun, at least 1; 0: that is not told.
	Diagnosis *adminapi.Diagnosis `json:"diagnosis,omitempty"`
	Wish      string              `json:"wish,omitempty"`
	Diagnosed int64               `json:"diagnosed,omitempty"`

	// Networks says that zones have these, because people who look wish that.
	Networks bool `json:"networks,omitempty"`

	Omitted Omitted `json:"omitted,omitzero"`
}

// Omitted is how much of an instance is not in its report, because there was no room. Of zones that are not in it,
// nothing is known.
type Omitted struct {
	Keys     int `json:"keys,omitempty"`     // which count as not listed
	Lists    int `json:"lists,omitempty"`    // zones without a list of keys
	Zones    int `json:"zones,omitempty"`    // whole zones
	Findings int `json:"findings,omitempty"` // of doctor
	Networks int `json:"networks,omitempty"` // zones without networks, although they have some
}

// String says what is omitted, or is empty.
func (o Omitted) String() string {
	switch {
	case o.Zones > 0:
		return fmt.Sprintf("%d zones with the fewest requests", o.Zones)
	case o.Lists > 0:
		return fmt.Sprintf("the keys of %d zones", o.Lists)
	case o.Networks > 0:
		return fmt.Sprintf("the networks of %d zones", o.Networks)
	case o.Findings > 0:
		return fmt.Sprintf("%d findings", o.Findings)
	}
	return ""
}

// Zone is what an instance tells about a zone.
type Zone struct {
	Name   string `json:"z"`
	Digest string `json:"d"` // differs for different definitions

	Totals map[string]uint64 `json:"t,omitempty"` // by outcome
	Rate   *float64          `json:"r,omitempty"`
	Near   uint64            `json:"n,omitempty"`
	InUse  *int64            `json:"u,omitempty"`
	adminapi.ZoneCosts

	Top      *Top      `json:"k,omitempty"` // nil: it is not told
	Networks *Networks `json:"p,omitempty"` // nil: they are not told
}

// Requests returns how many requests the zone has had.
func (z *Zone) Requests() (n uint64) {
	for _, of := range z.Totals {
		n += of
	}
	return n
}

// Encode returns a report as JSON of at most so many bytes. What does not fit is omitted: first the keys with the lowest
// counts, then the keys of the zones with the fewest requests, then decisions, then these zones.
func Encode(r *Report, most int) string {
	r.Form = form
	slices.SortStableFunc(r.Zones, func(a, b Zone) int { return cmp.Compare(b.Requests(), a.Requests()) })
	keepNetworks(mostNetworks, len(r.Zones))(r)
	for _, cut := range cuts {
		if text, err := json.Marshal(r); err == nil && len(text) <= most {
			return string(text)
		}
		cut(r)
	}
	for {
		text, err := json.Marshal(r)
		switch {
		case err == nil && len(text) <= most:
			return string(text)
		case len(r.Zones) == 0:
			return ""
		}
		half := len(r.Zones) / 2
		r.Omitted.Zones += len(r.Zones) - half
		r.Zones = r.Zones[:half]
	}
}

// mostNetworks is how many networks of one length of prefix are encoded: more have no room anyway.
const mostNetworks = 100

// cuts make a report smaller, in this order.
var cuts = []func(*Report){
	keepKeys(100), keepKeys(50), keepKeys(20), keepNetworks(20, 8), keepKeys(10), keepNetworks(10, 4), keepLists(8),
	func(r *Report) {
		r.Skipped += uint64(len(r.Decisions))
		r.Decisions = nil
	},
	keepKeys(5), keepNetworks(10, 1), keepLists(0), keepNetworks(0, 0),
	func(r *Report) {
		if r.Diagnosis != nil {
			r.Omitted.Findings += max(0, len(r.Diagnosis.Findings)-20)
			r.Diagnosis.Findings = r.Diagnosis.Findings[:min(20, len(r.Diagnosis.Findings))]
		}
	},
	func(r *Report) {
		for i := range r.Stores {
			r.Stores[i].Zones = nil
		}
	},
}

func keepKeys(n int) func(*Report) {
	return func(r *Report) {
		for i := range r.Zones {
			if t := r.Zones[i].Top; t != nil {
				r.Omitted.Keys += t.cut(n)
			}
		}
	}
}

func keepLists(n int) func(*Report) {
	return func(r *Report) {
		for i := range r.Zones {
			if i >= n && r.Zones[i].Top != nil {
				r.Zones[i].Top = nil
				r.Omitted.Lists++
			}
		}
	}
}

// The largest number that a report may have, and its longest texts in bytes. More cannot be true, and sums of these do
// not overflow.
const (
	mostCount = 1 << 53
	mostText  = 4 << 10
	mostWait  = 86_400_000
	mostTime  = 253402300799000 // the last second of the year 9999: JSON has no later times
)

var (
	errForm  = errors.New("it is of another version")
	errFalse = errors.New("it has numbers or texts that cannot be true")
)

// Decode reads a report. Others may have written it, so it is checked.
func Decode(text string, most int) (*Report, error) {
	if len(text) > most {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are possible", len(text), most)
	}
	var of struct {
		Form int `json:"form"`
	}
	if err := json.Unmarshal([]byte(text), &of); err == nil && of.Form != form { // whatever else it has
		return nil, errForm
	}
	r := new(Report)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, errFalse
	}
	ok := isText(r.Name) && r.Name != "" && isText(r.Version) && isText(r.Config) && isText(r.Wish) &&
		r.Requests <= mostCount && r.Rate >= 0 && r.Rate <= mostCount && r.Since >= 0 && r.Now >= 0 && r.Since <= mostTime && r.Now <= mostTime && r.Skipped <= mostCount &&
		r.Diagnosed >= 0 && r.Diagnosed <= mostWait
	for i := range r.Zones {
		ok = ok && r.Zones[i].isPossible()
	}
	for i := range r.Stores {
		ok = ok && isText(r.Stores[i].Name)
	}
	for i := range r.Decisions {
		d := &r.Decisions[i]
		ok = ok && isText(d.Zone) && slices.Contains(outcome.Names[:], d.Outcome) && d.Skipped <= mostCount
	}
	if !ok {
		return nil, errFalse
	}
	if d := r.Diagnosis; d != nil && slices.ContainsFunc(d.Findings, func(f adminapi.Finding) bool {
		return !slices.Contains([]string{adminapi.LevelOK, adminapi.LevelUnknown, adminapi.LevelWarn, adminapi.LevelFail}, f.Level)
	}) {
		return nil, errFalse
	}
	return r, nil
}

func isText(text string) bool { return len(text) <= mostText && utf8.ValidString(text) }

func (z *Zone) isPossible() bool {
	ok := isText(z.Name) && isText(z.Digest) && z.Near <= mostCount && z.CostSum <= mostCount
	for name, n := range z.Totals {
		ok = ok && n <= mostCount && slices.Contains(outcome.Names[:], name)
	}
	for _, n := range z.Costs {
		ok = ok && n <= mostCount
	}
	ok = ok && (z.InUse == nil || -mostCount <= *z.InUse && *z.InUse <= mostCount)
	ok = ok && (z.Rate == nil || 0 <= *z.Rate && *z.Rate <= mostCount)
	return ok && (z.Top == nil || z.Top.isPossible()) && (z.Networks == nil || z.Networks.isPossible())
}
