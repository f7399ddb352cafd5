package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("nothing is refused without a cause", (*key).withoutCause)

// withoutCause checks that nothing is refused for which there is room for sure: if all was charged that can have
// been, and none of it has come back. Slots come back when they are given back, and not only when their leases end.
func (k *key) withoutCause() (violations []string) {
	if k.Lend > 0 || k.queues() && k.Limit.MaxWait > 0 {
		return nil // what is held is used, also if nobody spends it, and a wait may be too long
	}
	slots := k.slots() && len(k.clocks) == 1 && !k.Plan.doubtful() && !k.Plan.has(unable)
	for _, a := range k.refused {
		most := k.late
		for _, b := range slices.Concat(k.admitted, k.unknown) {
			if back := slots && b.Adjusted != 0 && b.Adjusted+givesBackFor < a.Began; b.Began <= a.Ended && !back {
				most += b.Cost
			}
		}
		own := a.Decision.Override == "" && (a.Decision.Quota == k.Limit.Events || k.Plan.varies(k.zone) && !k.isBucket())
		if most+a.Cost <= a.Decision.Quota && (own || slots) && !a.Decision.Banned {
			violations = append(violations, fmt.Sprintf("client %d was refused by zone %d, key %d, without a cause: %d of %d can be used", a.Event, k.zone, k.key, most, a.Decision.Quota))
		}
	}
	return violations
}

// givesBackFor is how long it takes to give a slot back if nothing is wrong.
const givesBackFor = 50 * time.Millisecond
