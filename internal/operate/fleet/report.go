// Package fleet has what an instance tells the others of its fleet, and what follows from the reports of all. Reports come from
// a store that others may write to, so [Decode] makes possible what is in them.
package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// form is the version of reports. Fields that are new in a form do not change it, because others ignore them.
const form = 5

// Report is what an instance tells about itself, as the admin API has it. Times are by its own clock. While nobody looks, it tells
// only who it is and how its zones are defined.
type Report struct {
	Form  int    `json:"form"`
	Name  string `json:"name"`  // for people
	Zones []Zone `json:"zones"` // those with the most requests first

	// Now is when it tells all that follows, too. It is zero while nobody looks.
	Now time.Time `json:"now,omitzero"`

	// Requests are those in all zones of shared stores, and Rate is how many have come in a second in the last minute.
	Requests uint64  `json:"requests,omitempty"`
	Rate     float64 `json:"rate,omitempty"`

	// Trouble says that requests get no answer from a store.
	Trouble string `json:"trouble,omitempty"`

	// Omitted says what of an instance is not in its report, because there was no room.
	Omitted string `json:"omitted,omitempty"`
}

// Zone is what an instance tells about a zone.
type Zone struct {
	Name       string `json:"name"`
	Definition string `json:"definition"` // for people
	adminapi.ZoneCounts

	// Tops has the keys with the most requests, and those with the most refusals, and Since is when counting them began.
	Tops  [2][]adminapi.KeyCount `json:"tops,omitzero"`
	Since time.Time              `json:"since,omitzero"`
}

// mostKeys is how many keys a list of a report has at most.
const mostKeys = 100

// Encode returns a report as JSON with at most [store.MaxReport] bytes. Its lists get shorter until it has room, and then zones
// are left out.
func Encode(r *Report) string {
	r.Form = form
	all := len(r.Zones)
	for n := mostKeys; ; n /= 2 {
		for i := range r.Zones {
			for by, keys := range r.Zones[i].Tops {
				r.Zones[i].Tops[by] = keys[:min(n, len(keys))]
			}
		}
		if text, err := json.Marshal(r); err == nil && len(text) <= store.MaxReport {
			return string(text)
		}
		if n > 0 {
			continue
		}
		if len(r.Zones) == 0 {
			return ""
		}
		r.Zones = r.Zones[:len(r.Zones)/2]
		r.Omitted = fmt.Sprintf("%d zones with the fewest requests", all-len(r.Zones))
	}
}

// mostCount is the largest number that a report may have. More cannot be true, and sums of these do not overflow.
const mostCount = 1 << 53

var errUnreadable = errors.New("it is of another version, or cannot be read")

// Decode reads a report. Others may have written it, so one with numbers that cannot be true is not read.
func Decode(text string) (*Report, error) {
	r := new(Report)
	if err := json.Unmarshal([]byte(text), r); err != nil || r.Form != form || r.Name == "" || !isPlausible(text) {
		return nil, errUnreadable
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
