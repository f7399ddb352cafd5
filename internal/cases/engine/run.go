package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/cases"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Run carries out a case. If it fails, it is carried out again to describe what has happened.
func (e *Engine) Run(f *cases.File, c *cases.Case) cases.Result {
	began := time.Now()
	r := cases.Result{File: f.Name, Line: c.Line, Name: c.Name, Failures: e.carryOut(f, c, false)}
	if len(r.Failures) > 0 {
		r.Failures = e.carryOut(f, c, true)
	}
	r.Took = time.Since(began)
	return r
}

// Fails reports whether a case fails.
func (e *Engine) Fails(f *cases.File, c *cases.Case) bool { return len(e.carryOut(f, c, false)) > 0 }

// sent is a step with its requests.
type sent struct {
	step *cases.Step
	all  []*exchange
}

// carryOut carries out a case, and returns what does not hold. What requests find out is looked at when all are over.
func (e *Engine) carryOut(f *cases.File, c *cases.Case, detailed bool) (failures []cases.Failure) {
	w := e.newWorld(detailed)
	defer w.close()
	if f.URL != "" {
		w = w.withBase(f.URL)
	}
	var requests []sent
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Request != nil {
			requests = append(requests, sent{s, w.sendAll(s.Request)})
			continue
		}
		if step, err := w.step(s); err != nil {
			failures = append(failures, cases.Failure{Line: s.Line, Step: step, Got: err.Error()})
		}
	}
	w.Finish()
	for _, s := range requests {
		failures = append(failures, s.check()...)
	}
	slices.SortStableFunc(failures, func(a, b cases.Failure) int { return cmp.Compare(a.Line, b.Line) })
	return failures
}

// withBase sets the beginning of URLs.
func (w *world) withBase(url string) *world {
	engine := *w.Engine
	engine.base = url
	w.Engine = &engine
	return w
}

// sendAll sends a request as often as it is repeated.
func (w *world) sendAll(r *cases.Request) (all []*exchange) {
	for i := range r.Repeat {
		if i > 0 {
			w.MoveTo(w.Micros() + r.Every.Microseconds())
		}
		all = append(all, w.send(r))
	}
	return all
}

// step carries out a step that is no request. It returns the step in words.
func (w *world) step(s *cases.Step) (step string, err error) {
	switch {
	case s.Move != nil:
		return "at", w.move(s.Move)
	case s.Store != nil:
		if !w.config.Shared {
			return "store", fmt.Errorf("the store of the config is memory, which always answers")
		}
		w.down = !*s.Store
	case s.Instances > 0:
		w.number = s.Instances
	case s.Override != nil:
		return "override", w.override(s.Override)
	case s.Warning != nil:
		return "warning", w.warning(s.Warning)
	}
	return "", nil
}

// warning checks what loading the config has warned of.
func (w *world) warning(want *cases.Warning) error {
	if want.Zone != "" {
		if _, err := w.zone(want.Zone); err != nil {
			return err
		}
	}
	var all []string
	for _, h := range w.config.Handlers {
		for zone, warnings := range h.Warnings {
			if want.Zone == "" || want.Zone == zone {
				all = append(all, warnings...)
			}
		}
	}
	switch {
	case want.None && len(all) > 0:
		return fmt.Errorf("the config warns: %s", strings.Join(all, "; "))
	case want.None:
		return nil
	}
	for _, text := range all {
		if strings.Contains(text, want.Text) {
			return nil
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("the config warns of nothing in zone %s", want.Zone)
	}
	return fmt.Errorf("the config warns of something else in zone %s: %s", want.Zone, strings.Join(all, "; "))
}

// since returns a time after the beginning of a case.
func since(micros int64) string {
	at := time.UnixMicro(micros)
	if d := at.Sub(begin); d < 0 || d > 48*time.Hour {
		return format(at)
	} else {
		return duration.Format(d)
	}
}
