package world

import (
	"fmt"
	"slices"
)

var _ = promiseOfKeys("nothing is refused without a cause", (*key).withoutCause)

// withoutCause checks that nothing is refused for which there is room for sure: if all was charged that can have
// been, and none of it has come back.
func (k *key) withoutCause() (violations []string) {
	if k.Lend > 0 && (k.Plan.varies(k.zone) || k.late > 0 || len(k.Killed) > 0 || len(k.clocks) > 1 || k.Plan.hasKind(Flood)) || k.queues() && k.Limit.MaxWait > 0 {
		return nil // what others hold, or is on its way, is used, as is a loan that a step of the clock has ended, and a wait may be too long
	}
	for _, a := range k.refused {
		if k.Lend > 0 && k.shared(a) {
			continue
		}
		most := k.late
		for _, b := range slices.Concat(k.admitted, k.unknown) {
			if b.Began <= a.Ended {
				most += b.Cost
			}
		}
		if most+a.Cost <= a.Decision.Quota && a.Decision.Override == "" && (a.Decision.Quota == k.Limit.Events || k.Plan.varies(k.zone) && !k.isBucket()) && !a.Decision.Banned {
			violations = append(violations, fmt.Sprintf("client %d was refused by zone %d, key %d, without a cause: %d of %d can be used", a.Event, k.zone, k.key, most, a.Decision.Quota))
		}
	}
	return violations
}

// shared reports whether parts may be lent that a client cannot get, because another instance was asked about the key by the time of
// an answer.
func (k *key) shared(a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Zone == k.zone && b.Key == k.key && b.Instance != a.Instance && b.Began <= a.Ended
	})
}
