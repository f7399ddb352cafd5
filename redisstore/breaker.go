package redisstore

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

	// openFor is how long it then is, before one call finds out whether it is back.
	openFor = 500 * time.Millisecond
)

// breaker keeps requests from waiting for a Redis that does not answer. After openAfter
// calls that failed in a row it is open: nobody calls, but for a probe each openFor. The
// first call that succeeds closes it.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]

	// until is when the next probe is due, in nanoseconds since breakerEpoch; 0 while the
	// breaker is closed. Requests read it instead of asking the circuit, which has a lock.
	until atomic.Int64
	cause atomic.Pointer[error]
}

var breakerEpoch = time.Now()

func newBreaker() *breaker {
	b := new(breaker)
	b.blame(errors.New("no call has been made"))
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= openAfter },
		IsSuccessful: func(err error) bool {
			if err != nil {
				b.blame(err)
			}
			return err == nil
		},
		IsExcluded: func(err error) bool {
			// These say nothing about Redis.
			return errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled)
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				// The circuit is ready for a probe after openFor, not at it.
				b.until.Store(int64(time.Since(breakerEpoch)+openFor) + 1)
			case gobreaker.StateClosed:
				b.until.Store(0)
			case gobreaker.StateHalfOpen: // refuses has put off the next probe
			}
		},
	})
	return b
}

// refuses tells a request that there is no use in calling, and why not: an error that is
// [store.ErrUnavailable]. Of those that come when a probe is due it lets one go on; the
// others do not wait for it.
func (b *breaker) refuses() error {
	until := b.until.Load()
	if until == 0 {
		return nil
	}
	// Should the probe never call, another is due later.
	if now := int64(time.Since(breakerEpoch)); now >= until && b.until.CompareAndSwap(until, now+int64(openFor)) {
		return nil
	}
	return *b.cause.Load()
}

// run makes a call, unless the breaker is open. The call's result is for the circuit,
// which wants one.
func (b *breaker) run(call func() (struct{}, error)) error {
	_, err := b.circuit.Execute(call)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return *b.cause.Load()
	}
	return err
}

// failing tells whether the last call has failed.
func (b *breaker) failing() bool {
	return b.circuit.State() != gobreaker.StateClosed || b.circuit.Counts().ConsecutiveFailures > 0
}

// state is closed, open or half-open.
func (b *breaker) state() string { return b.circuit.State().String() }

func (b *breaker) blame(err error) {
	err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	b.cause.Store(&err)
}
