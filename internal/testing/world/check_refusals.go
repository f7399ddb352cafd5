package world

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// tellsWaits checks what refusals tell: a wait, unless there is none after which such a cost fits; nothing passes before it
// is over, and if nobody comes meanwhile, the cost passes then.
func (k *key) tellsWaits() {
	doubt := k.Lend > 0 || k.hasLost() || k.Plan.doubtful() || len(k.deeds) > 0 || k.varies
	sure := !doubt && !k.slots() && !k.queues()
	for _, a := range k.refused {
		d := a.Decision
		if d.Quota != k.Limit.Events || d.Banned {
			continue // another limit has decided
		}
		never := a.Cost > d.Quota
		if never != (d.RetryAfter == algorithms.Never) || !never && d.RetryAfter <= 0 {
			k.wrong("client %d is refused with a wait of %v", a.Event, d.RetryAfter)
		}
		unwritten := k.slots() && k.Plan.has(unable) // then leases from before a step stay as they are
		if most := k.longestWait(); d.RetryAfter > most+k.Lend+storeTimeout && !never && !unwritten && k.late == 0 {
			k.wrong("client %d is refused for %v: nothing lasts longer than %v", a.Event, d.RetryAfter, most)
		}
		if !never && sure {
			k.keepsWait(a)
		}
	}
}

// longestWait is how long a client waits at most that has used up its limit, also after a step back of the clock: for
// a window, and for a step back that is no longer than that. A lease lasts as it says, and no step back is felt that is
// longer than an hour.
func (k *key) longestWait() time.Duration {
	switch {
	case k.slots():
		return k.Limit.Lease + algorithms.MaxLease
	case k.Algorithm == "sliding_window_counter": // which counts two windows
		return 4 * k.Limit.Window
	}
	return 2*k.Limit.Window + time.Millisecond
}

// keepsWait checks that nobody was admitted before the wait of a refusal was over, if nothing was given back, and
// nobody was refused after it, if nobody has come since. If nothing is wrong, clients that come back after their waits
// pass at once.
func (k *key) keepsWait(a *Answer) {
	over := k.when(a) + a.Decision.RetryAfter
	again := a.Ended + a.Decision.RetryAfter
	if k.Plan.troubled() {
		again = over + time.Millisecond
	}
	for _, b := range k.admitted {
		at := k.when(b)
		if b.Decision.Quota == k.Limit.Events && b.Cost >= a.Cost && b.Began > a.Ended && at < over-time.Millisecond && !k.adjusts(0, at) {
			k.wrong("client %d was refused, and client %d passes before its wait is over", a.Event, b.Event)
		}
	}
	for _, b := range k.refused {
		d := b.Decision
		if d.Quota == k.Limit.Events && !d.Banned && b.Cost <= a.Cost && b.Began > again && !k.came(a.Began, b.Ended) {
			k.wrong("client %d was refused, and client %d is refused after its wait, though nobody came", a.Event, b.Event)
		}
	}
}

// came reports whether anything may have been charged between two times.
func (k *key) came(from, to time.Duration) bool {
	return k.adjusts(from, to) || slices.ContainsFunc(slices.Concat(k.admitted, k.unknown), func(b *Answer) bool { return b.Ended >= from && b.Began <= to })
}

// adjusts reports whether a charge may have been adjusted between two times. Adjustments are sent when others are
// under way no more, or with the next renewal of leases if Redis could not write.
func (k *key) adjusts(from, to time.Duration) bool {
	adjustsFor := time.Second
	if k.Plan.troubled() {
		adjustsFor *= 10
	}
	return slices.ContainsFunc(slices.Concat(k.admitted, k.unknown), func(b *Answer) bool {
		return b.Delta != 0 && b.Adjusted != 0 && b.Adjusted <= to && b.Adjusted+adjustsFor >= from
	})
}

// troubled reports whether anything goes wrong.
func (p *Plan) troubled() bool {
	return p.some(func(o *operation) bool { return o.sort.trouble() })
}

// withoutCause checks that nothing is refused for which there is room for sure: if all was charged that can have
// been, and none of it has come back. Slots come back when they are given back, and not only when their leases end.
func (k *key) withoutCause() {
	if k.Lend > 0 || k.queues() && k.Limit.MaxWait > 0 {
		return // what is held is used, also if nobody spends it, and a wait may be too long
	}
	slots := k.slots() && len(k.clocks) == 1 && !k.Plan.doubtful() && !k.Plan.has(unable)
	for _, a := range k.refused {
		most := k.late
		for _, b := range slices.Concat(k.admitted, k.unknown) {
			if back := slots && b.Adjusted != 0 && b.Adjusted+givesBackFor < a.Began; b.Began <= a.Ended && !back {
				most += b.Cost
			}
		}
		own := a.Decision.Override == "" && (a.Decision.Quota == k.Limit.Events || k.varies && !k.isBucket())
		if most+a.Cost <= a.Decision.Quota && (own || slots) && !a.Decision.Banned {
			k.wrong("client %d was refused without a cause: %d of %d can be used", a.Event, most, a.Decision.Quota)
		}
	}
}

// givesBackFor is how long it takes to give a slot back if nothing is wrong.
const givesBackFor = 50 * time.Millisecond
