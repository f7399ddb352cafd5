package world

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promise("while Redis does not answer, on_store_error decides", (*History).verdicts)

// verdicts checks that a request passes if and only if the last answer of its store lets it, or else what the zones say
// for when there is none.
func (h *History) verdicts() (violations []string) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		last := h.last(v)
		if e := &h.Plan.Events[v.Event]; e.Sort == blocked && v.Passes && h.Plan.enforces(e) || e.Sort == exempt && (!v.Passes || len(last) > 0) {
			violations = append(violations, fmt.Sprintf("client %d is %s, and passes is %v", v.Event, e.Sort, v.Passes))
		}
		if want, known := h.Plan.passes(v, last); known && want != v.Passes {
			violations = append(violations, fmt.Sprintf("client %d: passes is %v (%s), should be %v by %+v", v.Event, v.Passes, outcome.Names[v.Outcome], want, last[0]))
		}
	}
	return violations
}

// last are the answers to the last question of a request.
func (h *History) last(v *Verdict) (last []*Answer) {
	for j := range h.Answers {
		if a := &h.Answers[j]; a.Event == v.Event && a.Failure != killed {
			if len(last) > 0 && last[0].Began < a.Began {
				last = nil
			}
			last = append(last, a)
		}
	}
	return last
}

// enforces reports whether a request meets a zone that always holds, with its blocks.
func (p *Plan) enforces(e *Event) bool {
	for i := range p.Zones {
		if (e.Zone < 0 || e.Zone == i) && !p.Zones[i].DryRun {
			return true
		}
	}
	return false
}

// passes reports whether a request passes by what its store has answered last.
func (p *Plan) passes(v *Verdict, last []*Answer) (passes, known bool) {
	if len(last) == 0 || v.Outcome == outcome.Abandoned || v.Outcome == outcome.Local {
		return false, false
	}
	enforced := slices.DeleteFunc(slices.Clone(last), func(a *Answer) bool { return a.Independent })
	some := func(what func(a *Answer) bool) bool { return slices.ContainsFunc(enforced, what) }
	on := func(a *Answer) string { return cmp.Or(p.Zones[a.Zone].OnError, config.AllowOnError) }
	switch failure := last[0].Failure; failure {
	case "":
		return !some(func(a *Answer) bool { return !a.Decision.Allowed }), true
	case store.FailureOOM:
		return false, false
	}
	return !some(func(a *Answer) bool { return on(a) == config.DenyOnError }), !some(func(a *Answer) bool { return on(a) == config.LocalOnError })
}

var _ = promise("an instance on its own never exceeds the limit", (*History).alone)

// alone checks what an instance has admitted without the store, where nothing comes back meanwhile.
func (h *History) alone() (violations []string) {
	type where struct{ instance, zone, key int }
	used := make(map[where]int64)
	for i := range h.Verdicts {
		for _, p := range h.Verdicts[i].Parts {
			z := &h.Plan.Zones[p.Zone]
			if p.Outcome != outcome.Local || p.DryRun || z.slots() || z.Limit.Window.Hours() < 1 || z.Limit.Burst != 0 || h.Plan.Events[h.Verdicts[i].Event].Delta < 0 || z.Judges {
				continue
			}
			at := where{h.Verdicts[i].Instance, p.Zone, p.Key}
			most := total(h.Plan.limits(p.Zone))
			most += 1 + h.Length.Microseconds()*most/z.Limit.Window.Microseconds()
			if used[at] += p.Cost; used[at] > most {
				violations = append(violations, fmt.Sprintf("instance %d alone has admitted %d of zone %d, key %d", at.instance, used[at], p.Zone, p.Key))
			}
		}
	}
	return violations
}
