package world

import (
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

var _ = promiseOfKeys("with over pass, what is above the limit passes with a mark and costs nothing", (*key).marks)

// marks checks the requests in a zone that lets pass what is above its limit: one has the mark if it passes and the limit, that of
// the store or of the instance alone, has no room for it. Such a zone refuses only keys that an operator has banned.
func (k *key) marks() (violations []string) {
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		for _, p := range v.Parts {
			if !k.Over || p.Zone != k.zone || p.Key != k.key {
				continue
			}
			name := fmt.Sprintf("client %d in zone %d, key %d: within the limit: %v, refused: %v", v.Event, k.zone, k.key, p.Allowed, !p.DryRun)
			if marked := p.Outcome == outcome.Over; marked != (v.Passes && !p.Allowed) {
				violations = append(violations, fmt.Sprintf("%s, passes: %v, marked: %v", name, v.Passes, marked))
			}
			a := k.lastAnswer(v)
			if a == nil || a.Failure != "" || v.Outcome == outcome.Local {
				continue
			}
			if !p.DryRun && !a.Decision.Banned || p.Allowed != a.Decision.Allowed {
				violations = append(violations, fmt.Sprintf("%s, and the store has said %+v", name, a.Decision))
			}
		}
		violations = append(violations, k.costsNothing(v)...)
	}
	return violations
}

// lastAnswer returns the last answer of the store about a request.
func (k *key) lastAnswer(v *Verdict) (last *Answer) {
	for i := range k.Answers {
		if a := &k.Answers[i]; a.Event == v.Event && a.Client == v.Client && a.Zone == k.zone && a.Key == k.key && (last == nil || a.Began >= last.Began) {
			last = a
		}
	}
	return last
}

// costsNothing checks that a request costs nothing in a zone with over pass if it is above the limit or another zone refuses it,
// nor in other zones if a ban in such a zone refuses it. Clients that leave a queue pay.
func (k *key) costsNothing(v *Verdict) []string {
	above := slices.ContainsFunc(v.Parts, func(p Part) bool { return p.Zone == k.zone && p.Outcome == outcome.Over })
	refuses := slices.ContainsFunc(v.Parts, func(p Part) bool { return k.Plan.Zones[p.Zone].Over && !p.DryRun })
	mayCost := v.Passes && !above || v.Outcome == outcome.Abandoned || !k.Over && (!refuses || k.queues())
	a := k.chargedFor(v)
	if mayCost || a == nil || a.Delta == -a.Cost || slices.ContainsFunc(k.Killed, func(d Death) bool { return d.Instance == v.Instance }) {
		return nil
	}
	return []string{fmt.Sprintf("client %d passes: %v, and it pays %d and %d in zone %d, key %d", v.Event, v.Passes, a.Cost, a.Delta, k.zone, k.key)}
}
