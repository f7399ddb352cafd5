// Package recording is how many requests fleets have admitted in each second of a run, as bench/admitted records it
// and the picture shows it.
package recording

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// File is the path of the recording from the root of the repository.
const File = "internal/testing/picture/recording/admitted.json"

//go:embed admitted.json
var recorded []byte

// Recording is what was recorded in one run. All fleets ran at the same time.
type Recording struct {
	About   string // where, with what and when
	Limit   int64  // requests that may pass in a second
	Offered int64  // requests that were sent in a second
	Seconds int
	Down    [2]float64 // from when to when a fleet that was to be without Redis was, in seconds
	Fleets  []Fleet
}

// Fleet is what a fleet has answered.
type Fleet struct {
	Name     string
	Outage   bool
	Sent     int64   // requests that were answered
	Late     float64 // the most by which one was sent too late, in milliseconds
	Admitted []int64 // by the second in which the answer came
}

// Load returns the recording in the repository.
func Load() (*Recording, error) {
	r := new(Recording)
	return r, parse(recorded, r)
}

// Save writes the recording to a file.
func (r *Recording) Save(file string) error { return save(r, file) }

// checked is a recording, of which a part may be missing.
type checked interface{ check() error }

func parse(text []byte, r checked) error {
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	return r.check()
}

func save(r checked, file string) error {
	if err := r.check(); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// check returns an error unless all fleets have answered all that was offered, as one that is late by more than a window does
// not show what the limit does.
func (r *Recording) check() (err error) {
	for i := range r.Fleets {
		f := &r.Fleets[i]
		if want := r.Offered * int64(r.Seconds); f.Sent != want || len(f.Admitted) != r.Seconds || f.Late >= 1000 {
			err = errors.Join(err, fmt.Errorf("%s: %d of %d requests were answered, %.0f ms late at most, over %d of %d seconds", f.Name, f.Sent, want, f.Late, len(f.Admitted), r.Seconds))
		}
	}
	return err
}
