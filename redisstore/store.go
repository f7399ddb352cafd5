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

	batcher batcher
	holds   store.Holds
	returns returns

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
		today:   func() int64 { return time.Now().UnixMicro() },
	}
	s.batcher.run, s.batcher.timeout = s.call, options.Timeout
	s.returns.init()
	go s.settle()
	return s, nil
}

// Take implements [store.Store] with one call of the script, which it may share with
// others.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if len(checks) > store.MaxChecks {
		return fmt.Errorf("%d checks at once, at most %d", len(checks), store.MaxChecks)
	}
	both := make([]any, 2*len(checks))
	q := &question{keys: both[:len(checks)], args: both[len(checks):]}
	for i := range checks {
		if checks[i].Cost < 0 {
			return errors.New("cost is negative")
		}
		q.keys[i] = s.key(checks[i].Rule, checks[i].Key)
		q.args[i] = s.argument(&checks[i], opDecide, checks[i].Hold)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.batcher.ask(ctx, q)
	damaged := -1
	if err == nil {
		damaged, err = decode(reply, decisions[:len(checks)])
	}
	if damaged >= 0 {
		s.warn(checks[damaged].Rule.Zone())
	}
	if err != nil {
		s.lost(checks)
		s.connect()
		return err
	}
	s.hold(checks, decisions)
	return nil
}

// call runs the script once for several groups.
func (s *Store) call(ctx context.Context, questions []*question) (string, error) {
	groups := make([]byte, len(questions))
	n := 0
	for i, q := range questions {
		groups[i] = byte(len(q.keys))
		n += len(q.keys)
	}
	args := make([]any, 3, 4+2*n)
	args[2] = n
	for _, q := range questions {
		args = append(args, q.keys...)
	}
	args = append(args, string(groups))
	for _, q := range questions {
		args = append(args, q.args...)
	}
	return s.run(ctx, args)
}

// run calls the script by its digest, and by its text if Redis does not know it: then
// nothing has run yet.
func (s *Store) run(ctx context.Context, args []any) (string, error) {
	args[0], args[1] = "evalsha", s.script.digest
	cmd := redis.NewStringCmd(ctx, args...)
	err := s.client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", s.script.text
		cmd = redis.NewStringCmd(ctx, args...)
		err = s.client.Process(ctx, cmd)
	}
	if errors.Is(err, redis.ErrClosed) {
		return "", store.ErrClosed
	}
	return cmd.Val(), err
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.client.Del(ctx, s.key(rule, key)).Err()
}

// Close implements [store.Store].
func (s *Store) Close() error {
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
