package world

import (
	"fmt"
	"slices"
	"time"
)

// atRest checks what is left of a key of which nothing has come back: what was charged is what was admitted, with
// all that was adjusted once. What was in doubt may have been charged or not.
func (k *key) atRest() {
	slots := k.slots()
	if k.touched(Reset, Override) || k.isBucket() && k.varies || k.Lend > 0 && len(k.Killed) > 0 {
		return
	}
	if !slots && k.Limit.Window < time.Hour || k.hasLost() {
		return
	}
	least, most, late := int64(0), int64(0), int64(0)
	for _, a := range k.unknown {
		most += a.Cost + max(0, a.Delta)
		least += min(0, a.Delta)
	}
	doubtful, peak := k.Plan.doubtful(), most // before anything is given back
	for _, a := range k.admitted {
		least, most = least+a.Cost, most+a.Cost
		peak += a.Cost + max(0, a.Delta)
		if a.Adjusted != 0 && (a.Delta < 0 || !doubtful) {
			least += a.Delta
			late += max(0, a.Delta)
		}
		switch {
		case a.Adjusted == 0:
		case k.isBucket(): // which takes a charge to have come back by itself, if others were charged since
			most += a.Late
		case a.Delta > 0 || !doubtful:
			most += a.Delta
		}
	}
	if smallest := slices.Min(k.Plan.limits(k.zone)); k.varies && (peak > 2*smallest || late > smallest || k.Lend > 0) {
		least -= late // no late charge is above the limit it was made under, and none leaves more than twice as much, with what is held
	}
	if slots {
		least, most = 0, 0
	}
	least -= k.comesBack(k.Limit.Events)
	left := k.Left[k.place]
	if used := left.Quota - left.Remaining; used > most && !k.keepsUnits() || used < min(least, left.Quota) {
		k.wrong("%d are used at rest, which should be from %d to %d", used, least, most)
	}
}

// keepsUnits reports whether units that were charged ahead may not be given back: those of an answer that was lost, and of a
// bucket what is not worth it, or was a pad.
func (k *key) keepsUnits() bool {
	return k.Lend > 0 && (k.isBucket() || k.Plan.doubtful() || k.Plan.hasKind(Readonly, NoReplicas))
}

// tooManySlots checks that no more slots were taken at once than there are.
func (k *key) tooManySlots() {
	if !k.slots() || len(k.clocks) > 1 {
		return // leases end early if the clock steps forth
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
			k.wrong("client %d has a slot, of which %d are taken then", a.Event, taken)
		}
	}
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
	at, killed := k.Killed[a.Instance]
	return killed && by > at+k.Limit.Lease/2
}
