package zone

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Waits are the times that follow from a decision under a limit.
type Waits struct {
	// Retry is the wait until a retry may pass, to compare refusals: [algorithms.Never] if a refusal does not end
	// by itself. A slot may come back at any time, so for want of one, a Slot, it is what the client is told.
	Retry time.Duration
	Slot  bool

	// Told is the wait that a refused client is told: no less than Next, although a queue may have a place for
	// a request before, and hold it until then. It is one window, a second at least, for a refusal that
	// does not end by itself, and 0 for a cost that can never be allowed.
	Told time.Duration

	// Next is the wait until more quota is available, or 0 for slots, where that cannot be known.
	Next time.Duration
}

// slotWait is the wait for a slot that a client learns.
const slotWait = time.Second

// Waits returns the times that follow from a decision on a cost.
func (p *QuotaPolicy) Waits(d *algorithms.Decision, cost int64) Waits {
	never := d.RetryAfter == algorithms.Never
	w := Waits{Retry: d.RetryAfter, Slot: p.Slots && !d.Banned}
	if w.Slot && !never {
		w.Retry = slotWait
	}
	if !p.Slots {
		w.Next = d.NextAfter
	}
	switch {
	case NeverPasses(d, cost):
	case w.Slot:
		w.Told = slotWait
	case never:
		w.Told = max(p.Window.Length(), slotWait, w.Next)
	default:
		w.Told = max(d.RetryAfter, w.Next, time.Microsecond)
	}
	return w
}

// Waits are the times that follow from the decision of the limit. There must be one.
func (c *Check) Waits() Waits { return c.Policy.Waits(&c.Decision, c.Cost) }

// NeverPasses reports whether the limit refuses a cost above it, so that no wait is long enough.
func (c *Check) NeverPasses() bool { return c.Policy != nil && NeverPasses(&c.Decision, c.Cost) }

// NeverPasses reports whether a decision refuses a cost because it is above the limit, so that it could not
// pass either if nothing else had been charged. A limit of 0 refuses all costs alike, and may be one
// for a while.
func NeverPasses(d *algorithms.Decision, cost int64) bool {
	return !d.Allowed && !d.Banned && d.RetryAfter == algorithms.Never && d.Quota > 0 && cost > d.Quota
}
