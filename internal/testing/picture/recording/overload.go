package recording

import (
	_ "embed"
	"fmt"
)

// OverloadFile is the path of the recording of an overloaded upstream from the root of the repository.
const OverloadFile = "internal/testing/picture/recording/overload.json"

//go:embed overload.json
var overloaded []byte

// Overload is what bench/overload/real has recorded of an upstream that changes, with several limits.
type Overload struct {
	About   string // where it was recorded
	Case    string
	Offered float64 // requests that were sent in a second
	Seconds int
	Parts   []int // how many workers the upstream had in each equal part of the run
	Runs    []OverloadRun
}

// OverloadRun is a run with one limit.
type OverloadRun struct {
	Name   string
	Useful []int // answers in time, by the second in which they came
}

// LoadOverload returns the recording in the repository.
func LoadOverload() (*Overload, error) {
	r := new(Overload)
	return r, parse(overloaded, r)
}

// Save writes the recording to a file.
func (r *Overload) Save(file string) error { return save(r, file) }

// check returns an error unless all seconds of all runs are there.
func (r *Overload) check() error {
	if len(r.Runs) < 2 {
		return fmt.Errorf("the recording has %d runs", len(r.Runs))
	}
	for _, run := range r.Runs {
		if len(run.Useful) != r.Seconds {
			return fmt.Errorf("%s: %d of %d seconds", run.Name, len(run.Useful), r.Seconds)
		}
	}
	return nil
}
