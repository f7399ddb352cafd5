package world

import (
	"fmt"
)

var _ = promiseOfKeys("never more slots than there are", (*key).tooManySlots)

// tooManySlots checks that no more slots were taken at once than there are.
func (k *key) tooManySlots() (violations []string) {
	if !k.slots() || len(k.clocks) > 1 {
		return nil // leases end early if the clock steps forth
	}
	for _, a := range k.admitted {
		taken := int64(0)
		for _, b := range k.admitted {
			if k.when(b) <= k.when(a) && (b.Adjusted == 0 || b.Adjusted > k.when(a)) && !k.isLost(k.when(b), k.when(a)) {
				taken += b.Cost
			}
		}
		if taken > k.Limit.Events {
			violations = append(violations, fmt.Sprintf("client %d has a slot of zone %d, key %d, of which %d are taken then", a.Event, k.zone, k.key, taken))
		}
	}
	return violations
}
