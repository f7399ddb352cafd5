// Package outbox keeps the adjustments that wait to be sent to Redis, also while it is away.
package outbox

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// BatchSize is how many adjustments are sent at once, which bounds how long they keep
	// Redis from other calls.
	BatchSize = 64

	// maxSize bounds what waits while Redis is away. Beyond it the oldest are dropped.
	maxSize = 100_000
)

// What a lost call may have got is given back at once. If it is not there, the call may still be on its way: a connection
// that has lost a packet delivers what was sent on it after others do. So it is given back again, after pauses that double.
const (
	firstPause = store.RenewInterval
	lastPause  = 64 * firstPause
)

var errTooMany = errors.New("too many adjustments wait for redis")

// Adjustment is one that waits to be carried out.
type Adjustment struct {
	store.Adjustment
	since time.Time

	// Of what a lost call may have got: how long the next pause is, and when it ends. Otherwise 0.
	pause time.Duration
	due   time.Time
}

// Outbox has the adjustments that were not sent yet, and those that Redis has not carried out
// and that may be sent again.
type Outbox struct {
	// Wake gets a value when something is added.
	Wake chan struct{}

	mu      sync.Mutex
	waiting []Adjustment
	failed  []Adjustment
	absent  []Adjustment // given back, and not there: see Absent
	lost    uint64       // how many were dropped
	cause   error        // and why the last of them was
}

// New makes an empty outbox.
func New() *Outbox { return &Outbox{Wake: make(chan struct{}, 1)} }

// Add adds adjustments at the end.
func (o *Outbox) Add(more ...store.Adjustment) { o.add(0, more) }

// AddLost adds what gives back the leases that a lost call may have made.
func (o *Outbox) AddLost(more ...store.Adjustment) { o.add(firstPause, more) }

func (o *Outbox) add(pause time.Duration, more []store.Adjustment) {
	if len(more) == 0 {
		return
	}
	now := time.Now()
	o.mu.Lock()
	for i := range more {
		o.waiting = append(o.waiting, Adjustment{Adjustment: more[i], since: now, pause: pause})
	}
	o.bound()
	o.mu.Unlock()
	select {
	case o.Wake <- struct{}{}:
	default:
	}
}

// Next takes a batch off the front.
func (o *Outbox) Next() (batch []Adjustment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.waiting), BatchSize)
	batch, o.waiting = o.waiting[:n:n], o.waiting[n:]
	if len(o.waiting) == 0 {
		o.waiting = nil // and with it the room of what was sent
	}
	return batch
}

// Failed keeps what was not carried out for a later try. If nothing of the batch was, the
// others are not tried before that either.
func (o *Outbox) Failed(batch []Adjustment, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, batch...)
	if all {
		o.failed, o.waiting = append(o.failed, o.waiting...), nil
	}
	o.bound()
}

// Absent notes that a lease was not there when it was given back. It is given back again if a lost call may have made it.
// Such adjustments do not count as waiting. If too many are kept, the new one is not.
func (o *Outbox) Absent(a *Adjustment) {
	if a.pause == 0 || a.pause > lastPause {
		return
	}
	again := *a
	again.due, again.pause = time.Now().Add(a.pause), 2*a.pause
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.absent) < maxSize {
		o.absent = append(o.absent, again)
	}
}

// takeDue moves what is to be given back again to what waits. The lock is held.
func (o *Outbox) takeDue() {
	now := time.Now()
	o.absent = slices.DeleteFunc(o.absent, func(a Adjustment) bool {
		due := !a.due.After(now)
		if due {
			o.waiting = append(o.waiting, a)
		}
		return due
	})
	if len(o.absent) == 0 {
		o.absent = nil
	}
}

// Retry puts what failed back to the front, as far as it still matters, and what is to be given back again to the
// end. It reports whether anything waits.
func (o *Outbox) Retry() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failed) > 0 {
		now := time.Now()
		kept := slices.DeleteFunc(o.failed, func(a Adjustment) bool { return a.overdue(now) })
		o.failed, o.waiting = nil, append(kept, o.waiting...)
	}
	o.takeDue()
	return len(o.waiting) > 0
}

// Len returns how many adjustments wait.
func (o *Outbox) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) + len(o.failed)
}

// bound drops what is too much. The lock is held, as for drop.
func (o *Outbox) bound() {
	if over := len(o.failed) + len(o.waiting) - maxSize; over > 0 {
		n := min(over, len(o.failed))
		o.drop(errTooMany, o.failed[:n]...)
		o.drop(errTooMany, o.waiting[:over-n]...)
		o.failed, o.waiting = o.failed[n:], o.waiting[over-n:]
	}
}

// drop counts what is given up. Leases do not count: they end by themselves.
func (o *Outbox) drop(cause error, dropped ...Adjustment) {
	for i := range dropped {
		if !dropped[i].Repeatable() {
			o.lost++
			o.cause = cause
		}
	}
}

// Drop gives up adjustments that may have been carried out.
func (o *Outbox) Drop(cause error, dropped ...Adjustment) {
	o.mu.Lock()
	o.drop(cause, dropped...)
	o.mu.Unlock()
}

// DropAll gives up all that is left.
func (o *Outbox) DropAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(store.ErrClosed, o.failed...)
	o.drop(store.ErrClosed, o.waiting...)
	o.failed, o.waiting, o.absent = nil, nil, nil
}

// Lost returns how many adjustments have been given up so far, and why the last one was.
func (o *Outbox) Lost() (n uint64, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost, o.cause
}

// Repeatable reports whether carrying the adjustment out twice comes to the same as once. A
// lease ends by its name. A count changes each time.
func (a *Adjustment) Repeatable() bool {
	_, leases := a.Rule.Algorithm().(algorithms.Leaser)
	return leases
}

// overdue reports whether the adjustment has waited for so long that the charge would not count
// any more, if it had been adjusted in time. A cost would now be charged to a later
// window, and of a refund nothing would be left. Leases are given back in any case, because
// a renewal that was under way may have been carried out late.
func (a *Adjustment) overdue(now time.Time) bool {
	waited := now.Sub(a.since)
	return !a.Repeatable() && waited >= a.Rule.Limit().Window && waited >= lasts(&a.Adjustment, a.since.UnixMicro())
}

// Until returns when a late cost would not count any more, if it had been charged when it was known, in microseconds
// since 1970 on the clock of the store. It is 0 if that is not known.
func Until(a *store.Adjustment) int64 {
	if a.Known <= 0 {
		return 0
	}
	known := a.At + a.Known.Microseconds()
	return known + lasts(a, known).Microseconds()
}

// lasts is how long an adjustment made at an instant counts at most.
func lasts(a *store.Adjustment, at int64) time.Duration {
	by, _ := a.Rule.ChargedBy(a.Override, at)
	params, cost := by.Params, max(a.Cost, a.Delta)
	switch alg := a.Rule.Algorithm().(type) {
	case algorithms.Counter:
		used, _ := alg.Take(algorithms.State{}, params, at, params[0]) // what counts longest
		_, d := alg.Take(alg.Adjust(used, params, at, at, at, cost), params, at, 0)
		return d.ResetAfter
	case algorithms.Recorder:
		var l algorithms.Log
		alg.Adjust(&l, params, at, at, 1) // each event counts for as long
		return alg.Decide(&l, params, at, 0).ResetAfter
	}
	return 0
}
