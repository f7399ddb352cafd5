// Package redisstore keeps all states in a Redis that many Caddys share. One script
// call decides all checks of a request, on Redis's clock.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store implements [store.Store].
type Store struct {
	script  atomic.Pointer[script] // a test may set another while it is in use
	prefix  string
	timeout time.Duration
	logger  func() *zap.Logger
	today   func() int64     // microseconds since 1970; only the calendar needs it
	clock   func() time.Time // by which leases fall due

	ends     func() bool // whether the process does
	lingers  bool        // when it is closed, something still waits; see linger
	topology topology
	slots    bool // keys are spread over the slots of a Cluster
	denied   *denied
	holds    store.Holds
	returns  returns

	presence *presence

	damaged, losing, uncounted, distant throttle.Throttle // what was last warned of
}

// New makes a store. It checks the options and does not connect: Redis may come later.
func New(options Options) (*Store, error) {
	options, err := options.Complete()
	if err != nil {
		return nil, err
	}
	s := &Store{
		prefix:  options.KeyPrefix,
		timeout: options.Timeout,
		logger:  options.Logger,
		ends:    options.Ends,
		denied:  newDenied(options.DenyCache, options.Timeout),
		today:   func() int64 { return time.Now().UnixMicro() },
		slots:   options.Mode == ModeCluster,
		clock:   options.clock,
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.script.Store(newScript(redisClock, ttlMargin))
	s.returns.init()
	if s.topology, err = s.open(options); err != nil {
		return nil, err
	}
	go s.settle()
	s.presence = announce(s.eval, s.warnUncounted, options)
	for _, l := range s.topology.masters() {
		go l.prepare()
	}
	go s.tend()
	return s, nil
}

// tend looks after the connections until the store is closed.
func (s *Store) tend() {
	timer := time.NewTimer(firstBeat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.returns.quit:
			return
		}
		for _, l := range s.topology.masters() {
			l.keep()
			s.warnFar(l)
		}
		timer.Reset(beatInterval)
	}
}

// Take implements [store.Store] with one call of the script, which it may share with
// others.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := s.decide(ctx, checks, decisions)
	if err == nil || errors.Is(err, store.ErrUnavailable) { // which says its kind, and costs nothing
		return err
	}
	return failure{err}
}

// decide decides what is remembered, and has Redis decide the rest.
func (s *Store) decide(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	switch n := len(checks); {
	case n == 0:
		return nil
	case n > store.MaxChecks:
		return fmt.Errorf("%d checks at once, at most %d", n, store.MaxChecks)
	}
	var known settled
	if s.denied.off() {
		return s.take(ctx, checks, decisions, &known, 0)
	}
	came := s.denied.now()
	sent := came
	var t turn
	left := s.remembered(checks, decisions, sent, &known, &t)
	var err error
	if left > 0 && t.asked != nil && !t.first && !s.far(ctx, &checks[0]) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
		if err = t.wait(ctx); err == nil {
			known, t, sent = settled{}, turn{}, s.denied.now()
			left = s.remembered(checks, decisions, sent, &known, &t)
		}
	}
	heard := false
	if t.met() {
		defer func() { s.denied.end(&t, heard) }()
	}
	if err == nil && left > 0 {
		err = s.take(ctx, checks, decisions, &known, sent)
		heard = err == nil
	}
	if err != nil && kind(err) == store.FailureTimeout && !s.denied.empty() && s.standIn(checks, decisions, &known, came) {
		return nil
	}
	return err
}

// far reports whether there is no time to wait for the answer to another request first.
func (s *Store) far(ctx context.Context, c *store.Check) bool {
	slot := uint16(0)
	if s.slots {
		slot = slotOf(s.key(c.Rule.ID(), c.Key))
	}
	l, err := s.topology.lane(ctx, slot)
	return err == nil && 3*l.trip.is() > s.timeout
}

// take has Redis decide what is not known.
func (s *Store) take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, known *settled, sent time.Duration) error {
	if !s.slots { // else it is asked for each slot
		l, err := s.topology.lane(ctx, 0)
		if err == nil && l.breaker.open.Load() {
			if l.breaker.probed() {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, s.timeout)
				defer cancel()
			}
			err = l.breaker.refuses(ctx)
		}
		if err != nil {
			s.topology.suspect()
			return err
		}
	}
	q := questions.Get().(*question)
	if err := q.ask(s, checks, known); err != nil {
		return err
	}
	var err error
	if s.slots && !q.oneSlot() {
		err = s.takeSlots(ctx, q, checks)
	} else if err = s.ask(ctx, q); s.slots && q.keys() > 1 && redis.IsTryAgainError(err) {
		err = s.takeMoving(ctx, q, checks)
	}
	if err != nil {
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, errLate) {
			return err // nothing was sent, or nothing stands
		}
		s.lost(checks)
		return err
	}
	for i := range q.items {
		index := q.items[i].index
		decisions[index] = q.decisions[index]
	}
	if !s.denied.off() {
		s.remember(q, checks, sent)
	}
	if q.damaged != nil {
		s.warnDamaged(q.damaged.Zone())
	}
	s.hold(q, checks)
	q.free()
	return nil
}

// ask has a question answered by the Redis that keeps its keys.
func (s *Store) ask(ctx context.Context, q *question) error {
	if s.slots {
		return s.askSlot(ctx, q)
	}
	l, err := s.topology.lane(ctx, q.slot)
	if err == nil {
		if err = l.ask(ctx, q); errors.Is(err, store.ErrFull) {
			return err // which another connection or server would not change
		}
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errLate) {
			l.connect()
		}
	}
	if err != nil && !errors.Is(err, errLate) {
		s.topology.suspect()
	}
	return err
}

// process has a command carried out by the Redis that keeps a key, in one of the ways that
// a lane has for it.
func (s *Store) process(ctx context.Context, key string, way way, command func() redis.Cmder) (redis.Cmder, error) {
	slot := slotOf(key)
	l, err := s.topology.lane(ctx, slot)
	if err != nil {
		return nil, err
	}
	var cmd redis.Cmder
	again := func(l *lane, asking bool) error {
		cmd = command()
		return way(l, ctx, cmd, asking)
	}
	err = s.topology.follow(ctx, slot, again(l, false), again)
	return cmd, err
}

// eval runs another script than that of decisions.
func (s *Store) eval(ctx context.Context, script, key string, args ...any) (int64, error) {
	cmd, err := s.process(ctx, key, (*lane).process, func() redis.Cmder {
		return redis.NewIntCmd(ctx, append([]any{"eval", script, 1, key}, args...)...)
	})
	if err != nil {
		return 0, err
	}
	return cmd.(*redis.IntCmd).Val(), nil
}

// Reset implements [store.Store].
func (s *Store) Reset(ctx context.Context, rule *store.Rule, key string) error {
	setting, err := s.Get(ctx, rule, key)
	names := []string{s.key(rule.ID(), key), s.banKey(rule, key)}
	if own, _ := rule.PrepareOverride(setting); own.ReplacesLimit(rule) {
		names = append(names, s.key(own.States(rule.States()).ID, key))
	}
	for _, name := range names {
		err = errors.Join(err, s.drop(ctx, name))
	}
	s.denied.drop(rule.At(s.date(rule)), key)
	return err
}

// Instances implements [store.Fleet].
func (s *Store) Instances() int { return s.presence.instances() }

// Breaker is closed while Redis is asked, open while it is not, and half-open while one
// call finds out whether it is back. Of several masters the worst one counts.
func (s *Store) Breaker() string {
	worst := store.BreakerClosed
	for _, l := range s.topology.masters() {
		switch state := l.breaker.state(); state {
		case store.BreakerOpen:
			return state
		case store.BreakerHalfOpen:
			worst = state
		}
	}
	return worst
}

// Close implements [store.Store]. What is still held is given back: nobody will renew it.
func (s *Store) Close() error {
	s.presence.leave()
	s.returns.stop()
	if s.lingers {
		return nil // the connections are needed
	}
	err := s.topology.close()
	var broken net.Error // a connection that breaks as it is closed is closed too
	if errors.Is(err, redis.ErrClosed) || errors.As(err, &broken) {
		return nil
	}
	return err
}
