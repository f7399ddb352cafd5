package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

var _ = promise("a queue keeps its order", (*History).order)

// waiter is a request that has waited in one queue until its turn came.
type waiter struct {
	*Verdict
	turn     time.Duration
	answered time.Duration
	cost     int64
	quota    int64 // of the limit: another one has a queue of its own
}

// order checks that of two requests that wait in the same queue of an instance, the one with the earlier turn leaves first.
func (h *History) order() (violations []string) {
	for z := range h.Plan.Zones {
		if !h.Plan.Zones[z].queues() || h.Plan.has(clocks, servers, links, machines) {
			continue
		}
		for number := range h.Plan.keys() {
			k := h.key(z, number)
			if k.touched(Reset) {
				continue // then it begins from zero, and requests that wait keep their turns
			}
			all, gone := h.waiters(k)
			for _, a := range all {
				for _, b := range all {
					if b.overtakes(&a) && !b.moves(&a, gone) {
						violations = append(violations, fmt.Sprintf("client %d leaves the queue of zone %d, key %d, before client %d", b.Event, z, number, a.Event))
					}
				}
			}
		}
	}
	return violations
}

// overtakes reports whether a request leaves before another one with an earlier turn.
func (b *waiter) overtakes(a *waiter) bool {
	both := a.Instance == b.Instance && a.cost == b.cost && a.quota == b.quota && max(a.answered, b.answered) < min(a.turn, b.turn)
	return both && a.turn < b.turn && a.Ended > b.Ended
}

// moves reports whether another request has left before a later one came. Then the turn of that may be the one that was given
// back, while a request that has waited since before has moved up to an earlier one.
func (b *waiter) moves(later *waiter, gone []waiter) bool {
	return b.answered < later.answered && slices.ContainsFunc(gone, func(g waiter) bool {
		return g.Instance == b.Instance && g.cost == b.cost && g.turn > b.answered && g.Ended <= later.answered
	})
}

// waiters returns who has waited for a turn in one queue alone, and who has left a queue before.
func (h *History) waiters(k *key) (all, gone []waiter) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for _, a := range k.admitted {
			if a.Event != v.Event || a.Client != v.Client || a.Decision.Delay == 0 || a.Began < v.Began || a.Ended > v.Ended {
				continue
			}
			w := waiter{v, k.when(a) + a.Decision.Delay, a.Ended, a.Cost, a.Decision.Quota}
			switch {
			case v.Outcome == outcome.Abandoned:
				gone = append(gone, w)
			case v.Outcome == outcome.Allowed && v.Passes && len(v.Parts) == 1 && !v.Parts[0].DryRun:
				all = append(all, w)
			}
		}
	}
	return all, gone
}
