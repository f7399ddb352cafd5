// Package fleet has what an instance tells the others of its fleet, and what follows from the reports of all. Reports come from
// a store that others may write to, so [Decode] makes possible what is in them.
package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// form is the version of reports. Fields that are new in a form do not change it, because others ignore them.
const form = 3

// Report is what an instance tells about itself. Times are by its own clock. While nobody looks, it tells only who it is and how its
// zones are defined.
type Report struct {
	Form    int       `json:"form"`
	Name    string    `json:"name"`    // for people
	Version string    `json:"version"` // of the module
	Config  string    `json:"config"`  // the same for instances that define all zones alike
	Since   time.Time `json:"since"`   // when the process began
	Zones   []Zone    `json:"zones"`   // those with the most requests first

	// Now is when it tells all that follows, too. It is zero while nobody looks.
	Now time.Time `json:"now,omitzero"`

	// Requests are those in all zones of shared stores, and Rate is how many have come in a second in the last minute.
	Requests uint64  `json:"requests,omitempty"`
	Rate     float64 `json:"rate,omitempty"`

	Stores []adminapi.Store `json:"stores,omitempty"`

	// Decisions is a sample of those since the report before.
	Decisions []adminapi.Decision `json:"decisions,omitempty"`

	// Diagnosis is what doctor has found here lately.
	Diagnosis *adminapi.Diagnosis `json:"diagnosis,omitempty"`

	Omitted Omitted `json:"omitted,omitzero"`
}

// Omitted is how much of an instance is not in its report, because there was no room. Of zones that are not in it,
// nothing is known.
type Omitted struct {
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
	Name       string `json:"z"`
	Definition string `json:"d"` // for people

	Totals map[string]uint64 `json:"t,omitempty"` // by outcome
	Rate   *float64          `json:"r,omitempty"`
	Near   uint64            `json:"n,omitempty"`
	InUse  *int64            `json:"u,omitempty"`
	adminapi.ZoneCosts

	Keys     *Keys     `json:"k,omitempty"` // nil: they are not told
	Networks *Networks `json:"p,omitempty"` // nil: they are not told
}

// Requests returns how many requests the zone has had.
func (z *Zone) Requests() (n uint64) {
	for _, of := range z.Totals {
		n += of
	}
	return n
}

const (
	// mostKeys is how many keys of each kind a zone lists at most, and networksOf how many times fewer networks of one length
	// of prefix.
	mostKeys   = 100
	networksOf = 4

	// mostFindings is how many findings of doctor remain if there is little room.
	mostFindings = 20
)

// Encode returns a report as JSON with at most [store.MaxReport] bytes. Its lists get shorter until it has room, and those of the zones
// with the fewest requests go first. Then whole zones do.
func Encode(r *Report) string {
	r.Form = form
	slices.SortStableFunc(r.Zones, func(a, b Zone) int { return cmp.Compare(b.Requests(), a.Requests()) })
	for n := mostKeys; ; n = 2 * n / 3 {
		r.shorten(n)
		if text, err := json.Marshal(r); err == nil && len(text) <= store.MaxReport {
			return string(text)
		}
		if n > 0 {
			continue
		}
		if len(r.Zones) == 0 {
			return ""
		}
		half := len(r.Zones) / 2
		r.Omitted.Zones += len(r.Zones) - half
		r.Zones = r.Zones[:half]
	}
}

// shorten keeps n keys of each kind, of n zones.
func (r *Report) shorten(n int) {
	for i := range r.Zones {
		z, networks := &r.Zones[i], n/networksOf
		if z.Keys != nil && i >= n {
			z.Keys = nil
			r.Omitted.Lists++
		}
		if z.Networks != nil && networks == 0 {
			z.Networks = nil
			r.Omitted.Networks++
		}
		if z.Keys != nil {
			z.Keys.cut(n)
		}
		if z.Networks != nil {
			z.Networks.cut(networks)
		}
	}
	if n > 0 {
		return
	}
	r.Decisions = nil
	if d := r.Diagnosis; d != nil && len(d.Findings) > mostFindings {
		r.Omitted.Findings += len(d.Findings) - mostFindings
		d.Findings = d.Findings[:mostFindings]
	}
	for i := range r.Stores {
		r.Stores[i].Zones = nil
	}
}

// mostCount is the largest number that a report may have. More cannot be true, and sums of these do not overflow.
const mostCount = 1 << 53

var (
	errForm  = errors.New("it is of another version")
	errFalse = errors.New("it cannot be read")
)

// Decode reads a report. Others may have written it, so one with numbers that cannot be true is not read.
func Decode(text string) (*Report, error) {
	var of struct {
		Form int `json:"form"`
	}
	if err := json.Unmarshal([]byte(text), &of); err == nil && of.Form != form { // whatever else it has
		return nil, errForm
	}
	r := new(Report)
	if err := json.Unmarshal([]byte(text), r); err != nil || r.Name == "" || !isPlausible(text) {
		return nil, errFalse
	}
	return r, nil
}

// isPlausible reports whether no number in a text of JSON is larger than mostCount.
func isPlausible(text string) bool {
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if n, is := token.(float64); err != nil || is && math.Abs(n) > mostCount {
			return errors.Is(err, io.EOF)
		}
	}
}
