package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("never more slots than there are", (*key).tooManySlots)

// tooManySlots checks that no more slots were taken at once than there are.
func (k *key) tooManySlots() (violations []string) {
	if !k.slots() || len(k.clocks) > 1 {
		return nil // leases end early if the clock steps forth
	}
	for _, a := range k.admitted {
		taken, most := int64(0), a.Decision.Quota
		for _, b := range k.admitted {
			if k.when(b) == k.when(a) {
				most = max(most, b.Decision.Quota) // of another plan, and nobody knows who came first
			}
			if k.when(b) > k.when(a) || b.Adjusted != 0 && b.Adjusted <= k.when(a) || k.lostFor(a, b) || k.orphaned(b, k.when(a)) {
				continue
			}
			taken += b.Cost
		}
		if taken > most {
			violations = append(violations, fmt.Sprintf("client %d has a slot of zone %d, key %d, of which %d are taken then", a.Event, k.zone, k.key, taken))
		}
	}
	return violations
}

// over checks that a request that is over has given back its slots.
func (h *History) over(who client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.Answers {
		a := &h.Answers[i]
		if a.Event != int(who) || a.Lease == "" || !a.Charged {
			continue
		}
		back := func(b Answer) bool { return b.Lease == a.Lease && b.Adjusted != 0 }
		if !slices.ContainsFunc(h.Answers, back) {
			h.Wrong = append(h.Wrong, fmt.Sprintf("client %d is over, and keeps a slot of zone %d, key %d", a.Event, a.Zone, a.Key))
		}
	}
}

// orphaned reports whether a lease may be over by some time, because its instance was killed.
func (k *key) orphaned(a *Answer, by time.Duration) bool {
	return slices.ContainsFunc(k.Killed, func(d Death) bool { return d.Instance == a.Instance && by > d.At+k.Limit.Lease/2 })
}
