package limiter

import (
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// overOutcome returns the outcome of the request in a zone that lets pass what is above its limit. If another zone
// refuses the request, it does not count as above this limit, because it does not pass.
func (v *Verdict) overOutcome(i int) outcome.Outcome {
	switch {
	case !v.Passes():
		return outcome.NotCharged
	case !v.Decisions[i].Allowed:
		return outcome.Over
	}
	return v.Outcome
}

// BindingDryRun returns the dry run that would bind the client most; -1 if there is none.
func (v *Verdict) BindingDryRun() int {
	return v.bindingAmong(v.Enforced, len(v.Entries), func(z *zone.Zone) bool { return !z.PassesOver })
}

// BindingLenient returns the lenient entry that would bind the client most. There must be one.
func (v *Verdict) BindingLenient() int {
	index, _ := v.mostBinding(v.Enforced, len(v.Entries))
	return index
}

// refuseBanned makes lenient entries refuse a key that an operator has banned, if only the limit of their zone is
// lenient. They are asked independently, so what the other zones have charged for the request is given back.
func (v *Verdict) refuseBanned(s pool.Session) {
	for i := v.Enforced; i < len(v.Entries); i++ {
		if !v.Entries[i].Zone.PassesOver || !v.Decisions[i].Banned {
			continue
		}
		if !v.anyRefuses() {
			v.returnEnforced(s)
		}
		v.enforce(i)
	}
}

// returnEnforced gives back what the enforced entries have charged for a request that does not wait for its turn yet.
func (v *Verdict) returnEnforced(s pool.Session) {
	_, alone := v.wait.clock.(clock.Sleeper) // nobody takes a turn over
	if !alone {
		v.handOn(s, 0)
	}
	var back []store.Adjustment
	for i := range v.Enforced {
		if v.charged(i) && (alone || !v.queues(i)) {
			back = append(back, v.giveBack(i))
		}
	}
	if len(back) > 0 {
		s.Adjust(back...)
	}
}
