package topology

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// refreshTimeout bounds what a refresh asks of a server.
	refreshTimeout = time.Second

	// refreshPause is the pause between two refreshes, however many calls fail.
	refreshPause = 100 * time.Millisecond
)

// discovery finds out where the servers are, from the first call on: at intervals, and soon
// after a call has failed.
type discovery struct {
	roll
	refresh func() error
	every   time.Duration
	timeout time.Duration               // of a call that waits for the first refresh
	beside  []func(ctx context.Context) // run until close, and may ask for a refresh

	start     sync.Once
	found     chan struct{} // closed after the first refresh that succeeded
	triggered chan struct{}
	quit      context.CancelFunc
	quitting  context.Context
	running   sync.WaitGroup

	mu  sync.Mutex
	err error // of the last refresh
}

func newDiscovery(every, timeout time.Duration, logger func() *zap.Logger, refresh func() error) *discovery {
	d := &discovery{roll: roll{logger: logger}, refresh: refresh, every: every, timeout: timeout, found: make(chan struct{}), triggered: make(chan struct{}, 1)}
	d.quitting, d.quit = context.WithCancel(context.Background())
	return d
}

// wait returns when the servers are known, or with the reason why they are not.
func (d *discovery) wait(ctx context.Context) error {
	d.start.Do(func() {
		d.running.Go(d.run)
		for _, f := range d.beside {
			d.running.Go(func() { f(d.quitting) })
		}
	})
	select {
	case <-d.found:
		return nil
	default:
	}
	d.ReportFailure()
	if err := d.last(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err) // the next refresh may take long
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	select {
	case <-d.found:
		return nil
	case <-ctx.Done():
		return cmp.Or(d.last(), ctx.Err())
	}
}

// last is why the last refresh failed.
func (d *discovery) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// ReportFailure implements [Topology]: it asks for a refresh soon.
func (d *discovery) ReportFailure() {
	select {
	case d.triggered <- struct{}{}:
	default:
	}
}

func (d *discovery) run() {
	pace := d.every
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for known := false; ; {
		err := d.refresh()
		d.mu.Lock()
		d.err = node.Clip(node.Advise(err, false))
		d.mu.Unlock()
		if err == nil && !known {
			known = true
			close(d.found)
		}
		if next := d.next(); next != pace {
			pace = next
			ticker.Reset(pace)
		}
		select {
		case <-time.After(refreshPause):
		case <-d.quitting.Done():
			return
		}
		select {
		case <-d.triggered:
		case <-ticker.C:
		case <-d.quitting.Done():
			return
		}
		d.answer(ticker)
	}
}

// answer takes what else asked for the refresh that is about to begin, so that no other one follows it.
func (d *discovery) answer(ticker *time.Ticker) {
	select {
	case <-d.triggered:
	default:
	}
	select {
	case <-ticker.C:
	default:
	}
}

// next is how long after a refresh the next one is due. A server that has not answered is asked again soon.
func (d *discovery) next() time.Duration {
	if d.complete() {
		return d.every
	}
	return min(d.every, silentAfter)
}

// close returns when nothing runs any more. It closes the connections before, because reading from a server
// that hangs ends only then.
func (d *discovery) close(connections func() error) error {
	d.quit()
	d.start.Do(func() {}) // or it would start now
	err := connections()
	d.running.Wait()
	return err
}
