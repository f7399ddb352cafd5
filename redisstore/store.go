// Package redisstore keeps all states in a Redis that many Caddys share. One script
// call decides all checks of a request, on Redis's clock.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store implements [store.Store].
type Store struct {
	client  *redis.Client
	script  script
	prefix  string
	timeout time.Duration
	logger  func() *zap.Logger
	today   func() int64 // microseconds since 1970; only the calendar needs it

	lane    lane
	denied  *denied
	holds   store.Holds
	returns returns

	presence *presence

	connecting atomic.Bool

	// warned is when damage was last spoken of, in nanoseconds of Unix time.
	warned atomic.Int64
}

// New makes a store. It checks the options and does not connect: Redis may come later.
func New(options Options) (*Store, error) {
	client, err := options.client()
	if err != nil {
		return nil, err
	}
	s := &Store{
		client:  redis.NewClient(client),
		script:  newScript(redisClock, ttlMargin),
		prefix:  options.KeyPrefix,
		timeout: options.Timeout,
		logger:  options.Logger,
		denied:  newDenied(options.DenyCache),
		today:   func() int64 { return time.Now().UnixMicro() },
	}
	s.lane = lane{client: s.client, script: &s.script, breaker: newBreaker()}
	s.lane.send, s.lane.timeout, s.lane.epoch = s.lane.run, options.Timeout, time.Now()
	s.returns.init()
	go s.settle()
	s.presence = announce(s.client, options)
	return s, nil
}

// Take implements [store.Store] with one call of the script, which it may share with
// others.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	switch n := len(checks); {
	case n == 0:
		return nil
	case n > store.MaxChecks:
		return fmt.Errorf("%d checks at once, at most %d", n, store.MaxChecks)
	}
	var sent time.Duration
	var known settled
	if s.denied.most > 0 {
		sent = s.denied.now()
		if s.remembered(checks, decisions, sent, &known) == 0 {
			return nil
		}
	}
	if err := s.lane.breaker.refuses(); err != nil {
		return err
	}
	q := questions.Get().(*question)
	if err := q.ask(s, checks, &known); err != nil {
		return err
	}
	if err := s.lane.ask(ctx, q); err != nil {
		if errors.Is(err, store.ErrUnavailable) {
			return err // nothing was sent
		}
		s.lost(checks)
		s.connect()
		return err
	}
	for i := range q.items {
		index := q.items[i].index
		decisions[index] = q.decisions[index]
	}
	if s.denied.most > 0 {
		s.remember(q, checks, sent)
	}
	if q.damaged != nil {
		s.warn(q.damaged.Zone())
	}
	s.hold(q, checks)
	q.free()
	return nil
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := s.client.Del(ctx, s.key(rule, key)).Err()
	s.forget(rule, key)
	return err
}

// Instances implements [store.Fleet].
func (s *Store) Instances() int { return s.presence.instances() }

// Breaker is closed while Redis is asked, open while it is not, and half-open while one
// call finds out whether it is back.
func (s *Store) Breaker() string { return s.lane.breaker.state() }

// Close implements [store.Store].
func (s *Store) Close() error {
	s.presence.leave()
	s.returns.stop()
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// warn says that a stored state was damaged, at most once a minute.
func (s *Store) warn(zone string) {
	now, last := time.Now().UnixNano(), s.warned.Load()
	if now-last < int64(time.Minute) || !s.warned.CompareAndSwap(last, now) {
		return
	}
	s.logger().Warn("a state in Redis is not one of this version and counts as none; it is replaced with the next charge",
		zap.String("zone", zone), zap.String("key_prefix", s.prefix))
}
