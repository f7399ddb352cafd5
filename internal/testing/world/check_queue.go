package world

import (
	"fmt"
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
}

// order checks that of two requests that wait in the same queue of an instance, the one with the earlier turn leaves first.
func (h *History) order() (violations []string) {
	for z := range h.Plan.Zones {
		if !h.Plan.Zones[z].queues() || h.Plan.has(clocks, servers, links, machines) {
			continue
		}
		for number := range maxKeys {
			k := h.key(z, number)
			if k.touched(Reset) {
				continue // then it begins from zero, and requests that wait keep their turns
			}
			all := h.waiters(k)
			for _, a := range all {
				for _, b := range all {
					both := a.Instance == b.Instance && a.cost == b.cost && max(a.answered, b.answered) < min(a.turn, b.turn)
					if both && a.turn < b.turn && a.Ended > b.Ended {
						violations = append(violations, fmt.Sprintf("client %d leaves the queue of zone %d, key %d, before client %d", b.Event, z, number, a.Event))
					}
				}
			}
		}
	}
	return violations
}

func (h *History) waiters(k *key) (all []waiter) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		if v.Outcome != outcome.Allowed || !v.Passes || len(v.Parts) != 1 || v.Parts[0].DryRun {
			continue
		}
		for _, a := range k.admitted {
			if a.Event == v.Event && a.Client == v.Client && a.Decision.Delay > 0 && a.Began >= v.Began && a.Ended <= v.Ended {
				all = append(all, waiter{v, k.when(a) + a.Decision.Delay, a.Ended, a.Cost})
			}
		}
	}
	return all
}
