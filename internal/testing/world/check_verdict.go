package world

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// verdicts checks that a request passes if and only if the last answer of its store lets it, or else what the zones say
// for when there is none.
func (h *History) verdicts() {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		last := h.last(v)
		if v.Sort == blocked && v.Passes && h.Plan.enforces(&v.Event) || v.Sort == exempt && (!v.Passes || len(last) > 0) {
			h.wrong("client %d is %s, and passes is %v", v.Number, v.Sort, v.Passes)
		}
		if want, known := h.Plan.passes(v, last); known && want != v.Passes {
			h.wrong("client %d: passes is %v (%s), should be %v by %+v", v.Number, v.Passes, outcome.Names[v.Outcome], want, last[0])
		}
	}
}

// last are the answers to the last question of a request.
func (h *History) last(v *Verdict) (last []*Answer) {
	for j := range h.Answers {
		if a := &h.Answers[j]; a.Event == v.Number && a.Failure != killed {
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

// alone checks what an instance has admitted without the store, where nothing comes back meanwhile.
func (h *History) alone() {
	type where struct{ instance, zone, key int }
	used := make(map[where]int64)
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for _, p := range v.Parts {
			z := &h.Plan.Zones[p.Zone]
			if p.Outcome != outcome.Local || p.DryRun || z.slots() || z.Limit.Window < time.Hour || v.Delta < 0 || z.Judges {
				continue
			}
			at := where{v.Instance, p.Zone, v.Key}
			most := total(h.Plan.limits(p.Zone))
			most += 1 + h.Length.Microseconds()*most/z.Limit.Window.Microseconds()
			if used[at] += p.Cost; used[at] > most {
				h.wrong("instance %d alone has admitted %d of zone %d, key %d", at.instance, used[at], at.zone, at.key)
			}
		}
	}
}

// spent checks that a request that has passed is charged what its response says, in a header or in its body. A
// response that its client breaks off may be charged more. What Redis has not decided in the end pays nothing: a charge of an
// earlier try is given back.
func (k *key) spent() {
	if k.slots() || k.Judges || k.queues() || len(k.Killed) > 0 {
		return
	}
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		if v.Passes && v.Outcome == outcome.Allowed && v.For == 0 && v.Delta != 0 {
			if a := k.chargedFor(v); a != nil && a.Cost == v.Cost && a.Delta != v.spends()-v.Cost {
				k.wrong("the response to client %d says %d, and it is charged %d and %d", v.Number, v.spends(), a.Cost, a.Delta)
			}
		}
	}
}

// chargedFor returns the only charge of a request, if it looks like no other one.
func (k *key) chargedFor(v *Verdict) (only *Answer) {
	for _, a := range k.admitted {
		if a.Event != v.Number || a.Decision.Uncharged {
			continue
		}
		for _, b := range k.admitted {
			if b != a && b.Decision.Booked() == a.Decision.Booked() && b.Cost == a.Cost {
				return nil
			}
		}
		if only != nil {
			return nil
		}
		only = a
	}
	return only
}

// failures checks that each failure is one of a trouble that there was by then.
func (h *History) failures() {
	explained := func(failure string, by time.Duration) bool {
		return failure == "" || failure == killed || slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
			return h.began+e.At <= by && slices.Contains(operations[e.Kind].tells, failure)
		})
	}
	for i := range h.Answers {
		if a := &h.Answers[i]; !explained(a.Failure, a.Ended) {
			h.wrong("client %d fails at %v with %s, which no trouble explains: %s", a.Event, a.Ended, a.Failure, a.Err)
		}
	}
	for _, d := range h.Deeds {
		if !explained(d.Failure, d.Ended) {
			h.wrong("operator %d fails with %s, which no trouble explains: %s", d.Number, d.Failure, d.Err)
		}
	}
}
