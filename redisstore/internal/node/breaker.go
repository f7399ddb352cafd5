package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

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
	circuit *gobreaker.CircuitBreaker[struct{}]

	// open is what requests read instead of asking the circuit, which has a lock.
	open  atomic.Bool
	cause atomic.Pointer[error]

	// hung is the time of the last timeout that counted, in nanoseconds since epoch.
	hung  atomic.Int64
	epoch time.Time

	// opened is called when the breaker opens, with the circuit's lock held.
	opened func()

	// probing is closed when the probe that is under way is over; nil if no probe is.
	probing atomic.Pointer[chan struct{}]
}

func newBreaker() *breaker {
	b := &breaker{epoch: time.Now(), opened: func() {}}
	b.blame(errors.New("no call has been made"))
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= openAfter },
		IsSuccessful: func(err error) bool {
			if err == nil || works(err) {
				return true
			}
			b.blame(err)
			return false
		},
		IsExcluded: func(err error) bool {
			// These say nothing about Redis.
			return err != nil && (errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrBusy) || errors.Is(err, context.Canceled) || errors.As(err, new(sameHangError)))
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				b.open.Store(true)
				b.opened()
			case gobreaker.StateClosed:
				b.open.Store(false)
			case gobreaker.StateHalfOpen: // a probe is due
			}
		},
	})
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
func (b *breaker) due() bool { return b.circuit.State() == gobreaker.StateHalfOpen }

// probe makes a call that finds out whether Redis is back. Requests wait for it, so Redis must
// just have answered another call.
func (b *breaker) probe(call func() error) {
	over := make(chan struct{})
	b.probing.Store(&over)
	begun := b.now()
	_ = b.run(func() (struct{}, error) { return b.judge(begun, call()) })
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

// run makes a call, unless the breaker is open. The circuit wants a result of the call, which
// judge makes.
func (b *breaker) run(call func() (struct{}, error)) error {
	_, err := b.circuit.Execute(call)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return *b.cause.Load()
	}
	return err
}

// now is the time on the breaker's clock, at which a call is begun.
func (b *breaker) now() int64 { return int64(time.Since(b.epoch)) }

// judge returns what the circuit is to count for a call.
func (b *breaker) judge(begun int64, err error) (none struct{}, _ error) {
	if err != nil && Failure(err) == store.FailureTimeout && !b.hangs(begun) {
		err = sameHangError{err}
	}
	return none, err
}

// sameHangError is the timeout of a call that was under way when another call timed out. A
// moment in which this machine or that of Redis stalls may end several calls at once, and
// counts as one.
type sameHangError struct{ error }

func (e sameHangError) Unwrap() error { return e.error }

// hangs reports whether the timeout of a call counts that was begun at a time.
func (b *breaker) hangs(begun int64) bool {
	last := b.hung.Load()
	return begun >= last && b.hung.CompareAndSwap(last, b.now())
}

// failing reports whether the last call failed.
func (b *breaker) failing() bool {
	return b.circuit.State() != gobreaker.StateClosed || b.circuit.Counts().ConsecutiveFailures > 0
}

// state is closed, open, or half-open while a probe is under way.
func (b *breaker) state() string {
	state := b.circuit.State()
	if state == gobreaker.StateHalfOpen && !b.probed() {
		return store.BreakerOpen
	}
	return state.String()
}

func (b *breaker) blame(err error) {
	err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	b.cause.Store(&err)
}
