package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// openAfter is how many calls in a row must fail for Redis to be left alone.
	openAfter = 5

	// openFor is how long it then is, before a call finds out whether it is back.
	openFor = 500 * time.Millisecond

	// settleTime is for how long settle waits for the breaker to close, and settlePause how often it looks.
	settleTime  = 3 * openFor
	settlePause = openFor / 20
)

// breaker keeps requests from waiting for a Redis that does not answer. After openAfter
// calls that failed in a row it is open: no request makes a call. The node finds out in the
// background whether Redis is back, and the first call that succeeds closes it. An error
// which proves that Redis answers and runs scripts is no failure, see works: if a full Redis
// opened the breaker, no client would be limited because some keys have no room.
type breaker struct {
	open  atomic.Bool // changed with the lock held, and read by requests without it
	cause atomic.Pointer[error]

	// opened is called when the breaker opens, with the lock held.
	opened func()

	// probing is closed when the probe that is under way is over; nil if no probe is.
	probing atomic.Pointer[chan struct{}]

	mu       sync.Mutex
	failures int       // in a row, since the breaker was closed
	turns    int       // how often it was opened or closed: a call says nothing that was begun before the last time
	until    time.Time // when a call is to try Redis, if it is open
	trying   bool      // that call is under way
	hung     time.Time // when the last timeout came that counted
}

func newBreaker() *breaker {
	b := &breaker{opened: func() {}}
	b.blame(errors.New("no call has been made"))
	return b
}

// refuses returns nil, or why a request should make no call: an error that is
// [store.ErrUnavailable]. A request that comes while a probe is under way waits for its
// result, as long as ctx lasts.
func (b *breaker) refuses(ctx context.Context) error {
	if !b.open.Load() {
		return nil
	}
	if probing := b.probing.Load(); probing != nil {
		select {
		case <-*probing:
		case <-ctx.Done():
		}
	}
	if !b.open.Load() {
		return nil
	}
	return *b.cause.Load()
}

// probed reports whether a probe is under way.
func (b *breaker) probed() bool { return b.probing.Load() != nil }

// due reports whether the breaker is open and it is time for a probe.
func (b *breaker) due() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open.Load() && time.Now().After(b.until)
}

// probe makes a call that finds out whether Redis is back. Requests wait for it, so Redis must
// just have answered another call.
func (b *breaker) probe(call func() error) {
	over := make(chan struct{})
	b.probing.Store(&over)
	_ = b.run(call)
	b.probing.Store(nil)
	close(over)
}

// settle returns nil when the breaker is closed, or why requests still make no call. Redis must just have answered another
// call: as soon as it is time for a probe, settle makes it, unless one is under way.
func (b *breaker) settle(ctx context.Context, call func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for b.open.Load() && ctx.Err() == nil {
		if b.due() && !b.probed() {
			b.probe(call)
			continue
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
		}
	}
	return b.refuses(ctx)
}

// run makes a call, unless the breaker is open: then it makes one if that is due, and no other is under way.
func (b *breaker) run(call func() error) error {
	b.mu.Lock()
	begun, turns := time.Now(), b.turns
	if b.open.Load() {
		if !begun.After(b.until) || b.trying {
			b.mu.Unlock()
			return *b.cause.Load()
		}
		b.trying = true
	}
	b.mu.Unlock()
	err := call()
	b.count(begun, turns, err)
	return err
}

// count takes note of what a call says of Redis. A moment in which this machine or that of Redis stalls may end several calls at
// once, so the timeout of a call that was under way when another call timed out says nothing.
func (b *breaker) count(begun time.Time, turns int, err error) {
	well := err == nil || works(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	says := well || !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrBusy) && !errors.Is(err, context.Canceled) &&
		(Failure(err) != store.FailureTimeout || b.hangs(begun))
	if turns != b.turns {
		return
	}
	b.trying = false
	switch {
	case !says:
	case well:
		b.failures = 0
		if b.open.Load() {
			b.turns++
			b.open.Store(false)
		}
	default:
		b.blame(err)
		if b.failures++; b.open.Load() || b.failures >= openAfter {
			b.turns++
			b.failures, b.until = 0, time.Now().Add(openFor)
			b.open.Store(true)
			b.opened()
		}
	}
}

// hangs reports whether the timeout of a call counts that was begun at a time. The lock is held.
func (b *breaker) hangs(begun time.Time) bool {
	counts := !begun.Before(b.hung)
	if counts {
		b.hung = time.Now()
	}
	return counts
}

// failing reports whether the last call failed.
func (b *breaker) failing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open.Load() || b.failures > 0
}

// state is closed, open, or half-open while a probe is under way.
func (b *breaker) state() string {
	switch {
	case !b.open.Load():
		return store.BreakerClosed
	case b.probed():
		return store.BreakerHalfOpen
	}
	return store.BreakerOpen
}

func (b *breaker) blame(err error) {
	err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	b.cause.Store(&err)
}
