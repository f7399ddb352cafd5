package cases

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/offline"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Run carries out the cases of some files on a config, which does not run.
func Run(config []byte, files []*File) (results []Result, err error) {
	alone, err := offline.Provision(config)
	if err != nil {
		return nil, err
	}
	defer alone.Release()
	for _, f := range files {
		for _, c := range f.Cases {
			results = append(results, run(alone, f, c))
		}
	}
	return results, nil
}

// check returns an error if a step names a zone that the config has not. Otherwise skips would hold with a misspelled
// zone, or one that a change has removed, whatever happens.
func (w *world) check(s *Step) error {
	for _, name := range s.zones {
		if w.Zones[name] == nil {
			names := slices.Sorted(maps.Keys(w.Zones))
			return fmt.Errorf("the config has no zone %q%s, its zones are %s", name, suggest.Hint(name, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// run carries out a case. If it fails, it is carried out again to describe what has happened.
func run(config *offline.Config, f *File, c *Case) Result {
	began := time.Now()
	r := Result{File: f.Name, Line: c.Line, Name: c.Name, Failures: carryOut(config, f, c, false)}
	if len(r.Failures) > 0 {
		r.Failures = carryOut(config, f, c, true)
	}
	r.Took = time.Since(began)
	return r
}

// sent is a step with its requests.
type sent struct {
	step *Step
	all  []*exchange
}

// carryOut carries out a case, and returns what does not hold. What requests find out is looked at when all are over.
func carryOut(config *offline.Config, f *File, c *Case, detailed bool) (failures []Failure) {
	w, err := newWorld(config, f.URL, detailed)
	if err != nil {
		return []Failure{{Line: c.Line, Got: err.Error()}}
	}
	var requests []sent
	for i := range c.Steps {
		s := &c.Steps[i]
		err := w.check(s)
		switch {
		case err != nil:
		case s.Request != nil:
			requests = append(requests, sent{s, w.sendAll(s.Request)})
		default:
			err = s.do(w)
		}
		if err != nil {
			failures = append(failures, Failure{Line: s.Line, Step: s.word, Got: err.Error()})
		}
	}
	w.Finish()
	for _, s := range requests {
		if f := s.check(); f != nil {
			failures = append(failures, *f)
		}
	}
	slices.SortStableFunc(failures, func(a, b Failure) int { return cmp.Compare(a.Line, b.Line) })
	return failures
}

// sendAll sends a request as often as it is repeated.
func (w *world) sendAll(r *Request) (all []*exchange) {
	for i := range r.Repeat {
		if i > 0 {
			w.MoveTo(w.Micros() + time.Duration(r.Every).Microseconds())
		}
		all = append(all, w.send(r))
	}
	return all
}

// since returns a time after the beginning of a case.
func since(micros int64) string { return duration.Format(time.UnixMicro(micros).Sub(begin)) }

// begin is when a case begins, unless it says otherwise: at the start of a day, hour and year.
var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// world is the world of one case: requests go through the routes of a config, and the limiter decides them on an imagined
// clock, in memory, with unused limits. A request runs in a coroutine, because it may wait, or hold a slot while later
// requests come.
type world struct {
	*offline.Config
	clock.Timeline
	base     string // the beginning of URLs that are only a path
	baseless error  // why there is none
	store    *trial.Store
	ref      *pool.Ref // to the store
	detailed bool      // what happens is described in words
}

// newWorld returns a world in which all limits are unused. The base is empty if the file of the case has none.
func newWorld(config *offline.Config, base string, detailed bool) (w *world, err error) {
	w = &world{Config: config, base: base, detailed: detailed}
	if base == "" {
		w.base, w.baseless = baseOf(config)
	}
	w.MoveTo(begin.UnixMicro())
	w.store, w.ref, err = trial.NewStore(&w.Timeline, 0)
	return w, err
}
