package world

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

var _ = promiseOfKeys("what a response says to have cost is charged, no more and no less", (*key).spent)

// spent checks that a request that has passed is charged what its response says, in a header or in its body. A
// response that its client breaks off may be charged more. What Redis has not decided in the end pays nothing: a charge of an
// earlier try is given back.
func (k *key) spent() (violations []string) {
	if k.slots() || k.Judges || k.queues() || len(k.Killed) > 0 {
		return nil
	}
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		e := &k.Plan.Events[v.Event]
		if a := k.chargedFor(v); a != nil && v.Passes && v.Outcome == outcome.Allowed && e.Kind == Request && e.For == 0 && e.Delta != 0 && a.Cost == e.Cost {
			if want := e.spends() - e.Cost; a.Delta != want {
				violations = append(violations, fmt.Sprintf("the response to client %d says %d, and zone %d, key %d is charged %d and %d", v.Event, e.spends(), k.zone, k.key, a.Cost, a.Delta))
			}
		}
	}
	return violations
}

// chargedFor returns the only charge of a request, if it looks like no other one.
func (k *key) chargedFor(v *Verdict) (only *Answer) {
	for _, a := range k.admitted {
		if a.Event != v.Event || a.Decision.Uncharged {
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
