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

	// warned is when damage was last spoken of, in nanoseconds of Unix time.
	warned atomic.Int64
}

// New makes a store. It checks the options and does not connect: Redis may come later.
func New(options Options) (*Store, error) {
	client, err := options.client()
	if err != nil {
		return nil, err
	}
	return &Store{
		client:  redis.NewClient(client),
		script:  newScript(redisClock, ttlMargin),
		prefix:  options.KeyPrefix,
		timeout: options.Timeout,
		logger:  options.Logger,
	}, nil
}

// Take implements [store.Store] with one call of the script.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	args := make([]any, 3, 4+2*len(checks))
	for i := range checks {
		args = append(args, s.key(checks[i].Rule, checks[i].Key))
	}
	if len(checks) > maxGroup {
		return fmt.Errorf("%d checks at once, at most %d", len(checks), maxGroup)
	}
	args = append(args, string([]byte{byte(len(checks))}))
	for i := range checks {
		if checks[i].Cost < 0 {
			return errors.New("cost is negative")
		}
		args = append(args, argument(&checks[i]))
	}
	args[2] = len(checks)

	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.run(ctx, args)
	if err != nil {
		return err
	}
	damaged, err := decode(reply, decisions[:len(checks)])
	if damaged >= 0 {
		s.warn(checks[damaged].Rule.Zone())
	}
	return err
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
