package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// The timeout bounds how long Redis may be silent after a call was sent. Time that passes before that,
// in queues of this process and because other goroutines run, says nothing of Redis: if it counted,
// clients would turn limits off by sending more than this process can do. A request waits that long at
// most, and then fails with an error that says so.

const (
	minPatience    = time.Second
	patienceFactor = 20
)

// patienceFor is how long a request waits at most to be sent.
func patienceFor(timeout time.Duration) time.Duration {
	return max(minPatience, patienceFactor*timeout)
}

// errBusy is the error of a request that was not sent, because this process has too much to do.
var errBusy error = unsentError{fmt.Errorf("this Caddy is too busy: %w", store.ErrBusy)}

// errSilent is the error of a request that was not sent, because Redis does not answer.
var errSilent error = unsentError{fmt.Errorf("redis does not answer: %w", context.DeadlineExceeded)}

// ErrLate is the error of a request that was not sent, because it could not be answered any
// more within its time. It says nothing of Redis.
var ErrLate error = unsentError{fmt.Errorf("too little time was left to ask redis: %w", context.DeadlineExceeded)}

// dials are the connections that are being made.
type dials struct {
	mu    sync.Mutex
	count int
	last  time.Time // when one was made, or the first of those under way was begun
}

// begin notes that a connection is being made, until the returned function is called.
func (d *dials) begin() (end func()) {
	d.add(1)
	return func() { d.add(-1) }
}

func (d *dials) add(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count += n; d.count == n || n < 0 {
		d.last = time.Now()
	}
}

// hang reports whether connections are being made, and none was for some time.
func (d *dials) hang(after time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count > 0 && time.Since(d.last) >= after
}

// unconnected is the context of a call that has no connection yet. It ends if the making of one takes longer
// than the timeout, or if there is none for as long as a request may wait.
func (n *Node) unconnected(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() != nil {
		return ctx, func() {}
	}
	within, cancel := context.WithCancelCause(ctx)
	timeout := n.config.Timeout
	go func() {
		pause, late, end := timeout, 0, time.Now().Add(patienceFor(timeout))
		for late < 2 && time.Now().Before(end) {
			select {
			case <-time.After(pause):
			case <-within.Done():
				return
			}
			runtime.Gosched() // the goroutine that has made the connection may only have to run
			if pause = timeout / 4; n.dials.hang(timeout) {
				late++
			} else {
				late = 0
			}
		}
		if late < 2 {
			cancel(errBusy)
		}
		cancel(context.DeadlineExceeded)
	}()
	return within, func() { cancel(context.Canceled) }
}

// unsentIn returns the error of a call whose context is that of unconnected, as one that was not sent if it
// got no connection.
func unsentIn(ctx context.Context, err error) error {
	if err != context.Canceled && err != context.DeadlineExceeded { // those of connections are others
		return err
	}
	if cause := context.Cause(ctx); errors.Is(cause, store.ErrBusy) {
		return errBusy
	} else if cause != nil {
		err = cause
	}
	return unsentError{err}
}

// lead is the time that a request must have left to be worth sending. A request that has
// just come has more in any case, or a distance once measured too long would stay.
func (b *batcher) lead() time.Duration { return min(b.trip.is(), b.timeout-b.timeout/8) }
