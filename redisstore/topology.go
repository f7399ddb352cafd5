package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// topology knows which Redis keeps a key.
type topology interface {
	// lane returns the way to the one that keeps a slot's keys.
	lane(ctx context.Context, slot uint16) (*lane, error)

	// follow is told of an error, and repeats what Redis refused because another is to be
	// asked, by calling again. It returns the error that is left.
	follow(ctx context.Context, slot uint16, err error, again func(l *lane, asking bool) error) error

	// suspect is told that a lane failed: another may have taken its place.
	suspect()

	// masters are the ways to those that are asked at present.
	masters() []*lane

	close() error
}

// single is a Redis that has no other to take its place.
type single struct{ only *lane }

func (s single) lane(context.Context, uint16) (*lane, error) { return s.only, nil }

func (s single) follow(_ context.Context, _ uint16, err error, _ func(*lane, bool) error) error {
	return err
}

func (s single) suspect() {}

func (s single) masters() []*lane { return []*lane{s.only} }

func (s single) close() error { return s.only.client.Close() }

// lanes are the ways to all servers of a topology, by address.
type lanes struct {
	open func(address string) *lane

	mu        sync.Mutex
	byAddress map[string]*lane
	closed    bool
}

// retireAfter is how long a server is remembered that no longer belongs.
const retireAfter = time.Minute

// to returns the way to an address.
func (s *lanes) to(address string) (*lane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	l := s.byAddress[address]
	if l == nil {
		l = s.open(address)
		if s.byAddress == nil {
			s.byAddress = make(map[string]*lane)
		}
		s.byAddress[address] = l
	}
	l.named = time.Now()
	return l, nil
}

// all returns the ways that are known.
func (s *lanes) all() (all []*lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.byAddress {
		all = append(all, l)
	}
	return all
}

// retire closes what has not been named for long.
func (s *lanes) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, l := range s.byAddress {
		if time.Since(l.named) > retireAfter {
			delete(s.byAddress, address)
			_ = l.client.Close()
		}
	}
}

func (s *lanes) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if !s.closed {
		for _, l := range s.byAddress {
			errs = append(errs, l.client.Close())
		}
	}
	s.closed = true
	return errors.Join(errs...)
}
