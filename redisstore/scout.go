package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// lookTimeout bounds one look for the servers.
	lookTimeout = time.Second

	// lookPause is between two looks, however many calls fail.
	lookPause = 100 * time.Millisecond
)

// scout looks for the servers, from the first call on: now and then, and soon after a
// call has failed.
type scout struct {
	look    func(ctx context.Context) error
	every   time.Duration
	timeout time.Duration // of a call that waits for the first look

	start    sync.Once
	found    chan struct{} // closed after the first look that succeeded
	poked    chan struct{}
	quit     context.CancelFunc
	quitting context.Context
	looks    sync.WaitGroup

	mu  sync.Mutex
	err error // of the last look
}

func newScout(every, timeout time.Duration, look func(context.Context) error) *scout {
	s := &scout{look: look, every: every, timeout: timeout, found: make(chan struct{}), poked: make(chan struct{}, 1)}
	s.quitting, s.quit = context.WithCancel(context.Background())
	return s
}

// wait returns when the servers are known, or with the reason why they are not.
func (s *scout) wait(ctx context.Context) error {
	s.start.Do(func() { s.looks.Go(s.run) })
	select {
	case <-s.found:
		return nil
	default:
	}
	s.poke()
	if err := s.last(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err) // it looks again, which may take long
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case <-s.found:
		return nil
	case <-ctx.Done():
		return cmp.Or(s.last(), ctx.Err())
	}
}

// last is why the last look failed.
func (s *scout) last() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// poke has it look soon.
func (s *scout) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

func (s *scout) run() {
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for known := false; ; {
		ctx, cancel := context.WithTimeout(s.quitting, lookTimeout)
		err := s.look(ctx)
		cancel()
		s.mu.Lock()
		s.err = clip(err)
		s.mu.Unlock()
		if err == nil && !known {
			known = true
			close(s.found)
		}
		select {
		case <-time.After(lookPause):
		case <-s.quitting.Done():
			return
		}
		select {
		case <-s.poked:
		case <-ticker.C:
		case <-s.quitting.Done():
			return
		}
	}
}

func (s *scout) close() {
	s.quit()
	s.start.Do(func() {}) // or it would start now
	s.looks.Wait()
}
