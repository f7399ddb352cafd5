package redisstore

import (
	"errors"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxReturns bounds what waits while Redis is away. Beyond it the oldest are dropped.
const maxReturns = 100_000

var errTooMany = errors.New("more wait for Redis than are kept")

// pending is a correction that waits to be carried out.
type pending struct {
	store.Adjustment
	since time.Time
}

// returns are the corrections that wait: those that have not been sent, and those that
// Redis has not taken and that may be sent again.
type returns struct {
	sending sync.Mutex // held while a batch is under way

	mu      sync.Mutex
	waiting []pending
	failed  []pending
	lost    uint64 // how many were given up
	cause   error  // and why the last of them

	wake chan struct{}
	quit chan struct{}
	once sync.Once
	done chan struct{}
}

func (r *returns) init() {
	r.wake, r.quit, r.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// stop has what waits sent for the last time, and waits for that.
func (r *returns) stop() {
	r.once.Do(func() { close(r.quit) })
	<-r.done
}

func (r *returns) add(more ...store.Adjustment) {
	now := time.Now()
	r.mu.Lock()
	for i := range more {
		r.waiting = append(r.waiting, pending{more[i], now})
	}
	r.bound()
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take takes a batch off the front.
func (r *returns) take() (batch []pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), settleBatch)
	batch, r.waiting = r.waiting[:n:n], r.waiting[n:]
	if len(r.waiting) == 0 {
		r.waiting = nil // and with it the room of what was sent
	}
	return batch
}

// fail keeps what was not carried out. If nothing was, what waits need not be tried
// before that either.
func (r *returns) fail(batch []pending, nothing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, batch...)
	if nothing {
		r.failed, r.waiting = append(r.failed, r.waiting...), nil
	}
	r.bound()
}

// retry has what failed sent again before all else, as far as that still matters. It
// tells whether anything waits.
func (r *returns) retry() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) > 0 {
		now := time.Now()
		kept := r.failed[:0]
		for i := range r.failed {
			if !r.failed[i].overdue(now) {
				kept = append(kept, r.failed[i])
			}
		}
		clear(r.failed[len(kept):])
		r.failed, r.waiting = nil, append(kept, r.waiting...)
	}
	return len(r.waiting) > 0
}

// bound drops what is too much. The lock is held, as for lose.
func (r *returns) bound() {
	if over := len(r.failed) + len(r.waiting) - maxReturns; over > 0 {
		n := min(over, len(r.failed))
		r.lose(errTooMany, r.failed[:n]...)
		r.lose(errTooMany, r.waiting[:over-n]...)
		r.failed, r.waiting = r.failed[n:], r.waiting[over-n:]
	}
}

// lose counts what is given up. Leases are not lost: they end by themselves.
func (r *returns) lose(cause error, dropped ...pending) {
	for i := range dropped {
		if !dropped[i].repeatable() {
			r.lost++
			r.cause = cause
		}
	}
}

// giveUp is lose for those without the lock.
func (r *returns) giveUp(cause error, dropped ...pending) {
	r.mu.Lock()
	r.lose(cause, dropped...)
	r.mu.Unlock()
}

// abandon gives up all that is left.
func (r *returns) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose(store.ErrClosed, r.failed...)
	r.lose(store.ErrClosed, r.waiting...)
	r.failed, r.waiting = nil, nil
}

// losses are how many have been given up so far, and why the last.
func (r *returns) losses() (n uint64, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost, r.cause
}

// repeatable tells whether carrying the correction out twice comes to the same as once.
// A lease ends by its name. A count changes each time.
func (p *pending) repeatable() bool {
	_, lends := p.Rule.Algorithm().(algorithms.Lender)
	return lends
}

// overdue tells whether the correction has waited for so long that the charge would not
// count any more, had it been corrected in time. A cost would now be charged to a later
// window, and of a refund nothing would be left. Leases are given back in any case: a
// renewal that was under way may have been carried out late.
func (p *pending) overdue(now time.Time) bool {
	waited := now.Sub(p.since)
	return !p.repeatable() && waited >= p.Rule.Limit().Window && waited >= p.lasts()
}

// lasts is how long a charge of such a size counts by itself.
func (p *pending) lasts() time.Duration {
	at, cost := p.since.UnixMicro(), max(p.Cost, p.Delta)
	by, _ := p.Rule.ChargedBy(p.Override, at)
	params := by.Params
	switch a := p.Rule.Algorithm().(type) {
	case algorithms.Counter:
		_, d := a.Take(a.Adjust(algorithms.State{}, params, at, at, at, cost), params, at, 0)
		return d.ResetAfter
	case algorithms.Recorder:
		var l algorithms.Log
		a.Adjust(&l, params, at, at, 1) // each event counts for as long
		return a.Decide(&l, params, at, 0).ResetAfter
	}
	return 0
}
