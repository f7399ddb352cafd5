package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("never more slots than there are", (*key).tooManySlots)

// tooManySlots checks that no more slots were taken at once than there are. In a zone that lends, the slot of a request may be
// kept for a later one under the same limit, as if the first one still ran. So a request that meets a lower limit than others, by its
// plan or before a reload, may come after others, but never are there more of its kind than theirs.
func (k *key) tooManySlots() (violations []string) {
	if !k.slots() || len(k.clocks) > 1 {
		return nil // leases end early if the clock steps forth
	}
	for _, a := range k.admitted {
		taken, ofKind, most := int64(0), int64(0), a.Decision.Quota
		for _, b := range k.admitted {
			if k.when(b) == k.when(a) {
				most = max(most, b.Decision.Quota) // of another plan, and nobody knows who came first
			}
			if k.when(b) > k.when(a) || b.Adjusted != 0 && b.Adjusted <= k.when(a) || k.lostFor(a, b) || k.outlives(b, k.when(a)) || k.orphaned(b, k.when(a)) || k.unrenewed(b, k.when(a)) {
				continue
			}
			if taken += b.Cost; b.Decision.Quota == a.Decision.Quota {
				ofKind += b.Cost
			}
		}
		if k.Plan.varies(k.zone) && ofKind <= most && k.mayHaveKept(a) {
			most = max(most, slices.Max(k.Plan.limits(k.zone)))
		}
		if taken > most {
			violations = append(violations, fmt.Sprintf("client %d has a slot of zone %d, key %d, of which %d are taken then", a.Event, k.zone, k.key, taken))
		}
	}
	return violations
}

// mayHaveKept reports whether a request may have the slot of an earlier one of its instance, cost and limit.
func (k *key) mayHaveKept(a *Answer) bool {
	return k.Lend > 0 && slices.ContainsFunc(k.admitted, func(b *Answer) bool {
		same := b.Instance == a.Instance && b.Cost == a.Cost && b.Decision.Quota == a.Decision.Quota
		return same && k.when(b) < k.when(a) && b.Adjusted != 0 && b.Adjusted <= k.when(a)
	})
}

// outlives reports whether a request may have the slot of an earlier one, which its instance has kept although Redis had lost it
// by some time, or an operator had reset the key less than a second before, or longer before if what it was told may be lost.
func (k *key) outlives(a *Answer, by time.Duration) bool {
	kept := func(lost time.Duration) bool {
		return lost <= by && lost <= k.when(a) && lost >= k.when(a)-k.Limit.Lease && slices.ContainsFunc(k.admitted, func(b *Answer) bool {
			return b.Instance == a.Instance && b.Cost == a.Cost && k.when(b) <= lost && b.Adjusted != 0 && b.Adjusted <= k.when(a)
		})
	}
	return k.Lend > 0 && (slices.ContainsFunc(k.Losses, func(l Loss) bool { return kept(l.To) }) ||
		slices.ContainsFunc(k.Deeds, func(d Deed) bool {
			unaware := k.Plan.has(links) || k.when(a) <= d.Ended+time.Second+timeout
			return d.Kind == Reset && d.Zone == k.zone && d.Key == k.key && unaware && kept(d.Ended)
		}))
}

var _ = promiseOfKeys("no slot leaks", (*key).leaks)

// leaks checks that slots which were given back are free, before their leases end.
func (k *key) leaks() (violations []string) {
	if !k.slots() || len(k.clocks) > 1 || k.Plan.doubtful() || k.Plan.has(unable) {
		return nil
	}
	for _, a := range k.refused {
		if k.Lend > 0 && k.shared(a) {
			continue
		}
		taken := int64(0)
		for _, b := range slices.Concat(k.admitted, k.unknown) {
			if back := b.Adjusted != 0 && b.Adjusted+givesBackFor < a.Began; b.Began <= a.Ended && !back {
				taken += b.Cost
			}
		}
		if taken+a.Cost <= a.Decision.Quota && !a.Decision.Banned {
			violations = append(violations, fmt.Sprintf("client %d is refused a slot of zone %d, key %d, of which %d are taken", a.Event, k.zone, k.key, taken))
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
		if a.Event != who.event || a.Client != who.number || a.Lease == "" || !a.Charged {
			continue
		}
		back := func(b Answer) bool { return b.Lease == a.Lease && b.Adjusted != 0 }
		if !slices.ContainsFunc(h.Answers, back) {
			h.Wrong = append(h.Wrong, fmt.Sprintf("client %d is over, and keeps a slot of zone %d, key %d", a.Event, a.Zone, a.Key))
		}
	}
}

// shared reports whether slots may be kept that a client cannot get, because another instance was asked about the key by the time of
// an answer.
func (k *key) shared(a *Answer) bool {
	return slices.ContainsFunc(k.Answers, func(b Answer) bool {
		return b.Zone == k.zone && b.Key == k.key && b.Instance != a.Instance && b.Began <= a.Ended
	})
}

// givesBackFor is how long it takes to give a slot back if nothing is wrong.
const givesBackFor = 50 * time.Millisecond

// orphaned reports whether a lease may be over by some time, because its instance was killed.
func (k *key) orphaned(a *Answer, by time.Duration) bool {
	return slices.ContainsFunc(k.Killed, func(d Death) bool { return d.Instance == a.Instance && by > d.At+k.Limit.Lease/2 })
}

// unrenewed reports whether a lease may be over by some time, because its instance had so much to do that it was not renewed.
func (k *key) unrenewed(a *Answer, by time.Duration) bool {
	return slices.ContainsFunc(k.Stalls, func(s Stall) bool {
		return s.Instance == a.Instance && k.when(a) <= s.To && min(by, s.To) > s.From+k.Limit.Lease/2
	})
}
