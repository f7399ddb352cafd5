package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/denycache"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// This is the way of Take, in the order in which it happens: what the deny cache knows, the
// request that is made of the rest, sending it, and what is remembered of the answer.

// Take implements [store.Store] with one call of the script, which it may share with
// others.
func (s *Store) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	var err error
	if lends(checks) {
		err = s.takeLent(ctx, checks, decisions)
	} else {
		err = s.take(ctx, checks, decisions)
	}
	if err == nil || errors.Is(err, store.ErrUnavailable) { // which says its kind, and costs nothing
		return err
	}
	return failure{err}
}

// failure is an error that the store returns.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Failure returns the kind of the error, see [store.Failure].
func (f failure) Failure() string { return node.Failure(f.error) }

// take decides what the cache knows, and has Redis decide the rest. If several requests
// come when a refusal is just over, one asks Redis, and the others wait for its answer.
func (s *Store) take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	switch n := len(checks); {
	case n == 0:
		return nil
	case n > store.MaxChecks:
		return fmt.Errorf("%d checks at once, at most %d", n, store.MaxChecks)
	}
	var known indexes
	if s.cache.Off() {
		return s.ask(ctx, checks, decisions, &known, 0)
	}
	came := s.cache.Now()
	sent := came
	var f denycache.Flight
	left := s.decideFromCache(checks, decisions, sent, &known, &f)
	var err error
	if left > 0 && f.Follows() && !s.isFar(ctx, &checks[0]) {
		if err = f.Wait(ctx); err == nil {
			known, f, sent = indexes{}, denycache.Flight{}, s.cache.Now()
			left = s.decideFromCache(checks, decisions, sent, &known, &f)
		}
	}
	answered := false
	if f.MetExpired() {
		defer func() { s.cache.Land(&f, answered, shared(ctx, err)) }()
	}
	if err == nil && left > 0 {
		err = s.ask(ctx, checks, decisions, &known, sent)
		answered = err == nil
	}
	if err != nil && unanswered(err) && !s.cache.Empty() && s.refuseFromCache(checks, decisions, &known, came, node.MayHaveRun(err)) {
		return nil
	}
	return err
}

// unanswered reports whether a request got no answer in time, of Redis or of this process.
func unanswered(err error) bool {
	switch node.Failure(err) {
	case store.FailureTimeout, store.FailureBusy:
		return true
	}
	return false
}

// shared returns the error of a request that is also that of the requests that wait for its answer; nil if
// these are to ask for themselves.
func shared(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && !errors.Is(err, node.ErrLate) && unanswered(err) {
		return err
	}
	return nil
}

// indexes is a set of checks, by index, that are decided already.
type indexes [(store.MaxChecks + 63) / 64]uint64

func (s *indexes) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *indexes) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// decideFromCache decides what is known to be refused, without Redis: the checks that are
// decided together if one of them is refused, and each that is decided by itself. What would
// be refused for the sake of another check is not looked at, so its decision holds no numbers.
// It returns how many checks are left.
func (s *Store) decideFromCache(checks []store.Check, decisions []algorithms.Decision, now time.Duration, known *indexes, f *denycache.Flight) (left int) {
	left = len(checks)
	if s.cache.Empty() {
		return left
	}
	refused := false
	for i := range checks {
		c := &checks[i]
		if c.Peek {
			continue
		}
		d, ok := s.cache.Get(c, c.Rule.At(s.date(c.Rule)), now, f)
		if !ok {
			continue
		}
		decisions[i] = d
		known.add(i)
		left--
		refused = refused || !c.Independent
	}
	if refused {
		for i := range checks {
			if !checks[i].Alone() && !known.has(i) {
				decisions[i] = algorithms.Decision{Allowed: true}
				known.add(i)
				left--
			}
		}
	}
	if left == 0 {
		s.cache.Hit()
	}
	return left
}

// date is what the calendar needs to know of the time.
func (s *Store) date(rule *store.Rule) int64 {
	if rule.Dated() {
		return s.today()
	}
	return 0
}

// isFar reports whether there is no time to wait for the answer to another request first.
func (s *Store) isFar(ctx context.Context, c *store.Check) bool {
	slot := uint16(0)
	if s.keys.cluster {
		slot = topology.SlotOf(s.keys.state(c.Rule.ID(), c.Key))
	}
	n, err := s.topology.Node(ctx, slot)
	return err == nil && 3*n.Distance() > s.timeout
}

// ask has Redis decide what is not known.
func (s *Store) ask(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, known *indexes, sent time.Duration) error {
	if !s.keys.cluster { // else it is asked for each slot
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	r := s.newRequest()
	if err := s.fill(r, checks, known); err != nil {
		return err
	}
	var err error
	if s.keys.cluster && !oneSlot(r) {
		err = s.sendParts(ctx, r, checks)
	} else if err = s.send(ctx, r); s.keys.cluster && severalKeys(r) && redis.IsTryAgainError(err) {
		err = s.sendByKey(ctx, r, checks)
	}
	if err != nil {
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy) && !errors.Is(err, node.ErrLate) && !errors.Is(err, protocol.ErrLent) {
			s.giveBackLost(checks)
		}
		return err
	}
	for i := range r.Ops {
		index := r.Ops[i].Index
		decisions[index] = r.Decisions[index]
	}
	if !s.cache.Off() {
		s.remember(r, checks, sent)
	}
	if r.Damaged != nil {
		s.warnDamaged(r.Damaged.Zone())
	}
	s.noteHolds(r, checks)
	s.free(r)
	return nil
}

// ready returns nil if there is a server to ask, which is not a Cluster's.
func (s *Store) ready(ctx context.Context) error {
	n, err := s.topology.Node(ctx, 0)
	if err == nil {
		err = n.Ready(ctx)
	}
	if err != nil {
		s.topology.ReportFailure()
	}
	return err
}

// newRequest returns an empty request.
func (s *Store) newRequest() *node.Request { return s.requests.Get().(*node.Request) }

// free lets a request be used again. One whose caller has left must not be: the answer may be
// on its way.
func (s *Store) free(r *node.Request) {
	r.Clear()
	s.requests.Put(r)
}

var errHold = errors.New("the name of a hold is too long")

// fill makes a request of the caller's checks, but for those that are decided already: a group
// of those to decide together, and one for each that is decided by itself.
func (s *Store) fill(r *node.Request, checks []store.Check, known *indexes) error {
	r.AllAlone = true
	for i := range checks {
		c := &checks[i]
		r.AllAlone = r.AllAlone && c.Alone()
		switch {
		case c.Cost < 0:
			return fmt.Errorf("cost must be at least 0, got %d", c.Cost)
		case len(c.Hold) > protocol.MaxHold:
			return fmt.Errorf("%w: %d bytes, at most %d", errHold, len(c.Hold), protocol.MaxHold)
		case !c.Alone() && !known.has(i):
			r.Ops = append(r.Ops, s.op(c, protocol.Decide, c.Hold, i))
		}
	}
	r.EndGroup()
	for i := range checks {
		if c := &checks[i]; c.Alone() && !known.has(i) {
			kind, hold := protocol.Decide, c.Hold
			if c.Peek {
				kind, hold = protocol.Peek, ""
			}
			op := s.op(c, kind, hold, i)
			op.Alone = true
			r.Ops = append(r.Ops, op)
			r.EndGroup()
		}
	}
	r.Expect(len(checks))
	return nil
}

// op makes a check ready for the script.
func (s *Store) op(c *store.Check, kind protocol.Kind, hold string, index int) protocol.Op {
	o := protocol.Op{
		Rule: c.Rule, Prepared: c.Rule.At(s.date(c.Rule)), Key: s.keys.state(c.Rule.ID(), c.Key),
		Cost: c.Cost, Hold: hold, Kind: kind, Index: index,
	}
	if c.KeyRules != nil && (kind == protocol.Decide || kind == protocol.Peek) {
		o.KeyRules = s.keyRules(c)
	}
	if s.keys.cluster {
		o.Slot = topology.SlotOf(o.Key)
	}
	return o
}

// keyRules is what the script is to look at beside the state of a check.
func (s *Store) keyRules(c *store.Check) *protocol.KeyRules {
	k := new(protocol.KeyRules)
	if c.KeyRules.Overrides {
		k.Override = s.keys.override(c.Rule, c.Key)
	}
	if c.KeyRules.Ban != nil {
		k.BanState, k.Ban = s.keys.ban(c.Rule, c.Key), c.KeyRules.Ban
	}
	return k
}

// oneSlot reports whether all keys have one slot, and notes it.
func oneSlot(r *node.Request) bool {
	r.Slot = r.Ops[0].Slot
	return !slices.ContainsFunc(r.Ops, func(o protocol.Op) bool { return o.Slot != r.Slot })
}

// severalKeys reports whether a request has more than one key.
func severalKeys(r *node.Request) bool { return len(r.Ops) > 1 || r.Ops[0].KeyRules != nil }

// send has a request answered by the node that has its keys. In a Cluster it follows the nodes'
// directions.
func (s *Store) send(ctx context.Context, r *node.Request) error {
	n, err := s.topology.Node(ctx, r.Slot)
	if err == nil {
		if s.keys.cluster {
			err = n.DoSlot(ctx, r, false)
		} else {
			err = n.Do(ctx, r)
		}
	}
	if err == nil || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrBusy) || errors.Is(err, node.ErrLate) || errors.Is(err, protocol.ErrLent) {
		return err // another server would not have more room or time, or decide differently
	}
	s.topology.ReportFailure()
	if n == nil || !node.Elsewhere(err) {
		return err
	}
	for hop := 1; err != nil; hop++ {
		to, asking, left := s.topology.Redirect(ctx, r.Slot, err, hop)
		if to == nil {
			return left
		}
		err = to.DoSlot(ctx, r, asking)
	}
	return nil
}

// remember puts what Redis has just decided into the cache.
func (s *Store) remember(r *node.Request, checks []store.Check, sent time.Duration) {
	now := s.cache.Now()
	for group := range r.Groups() {
		charged := r.Charged(group)
		for i := range group {
			op := &group[i]
			if c := &checks[op.Index]; !c.Peek && (c.Cost > 0 || r.Decisions[op.Index].Banned) {
				s.cache.Put(c, op.Prepared, r.Decisions[op.Index], charged, sent, now)
			}
		}
	}
}

// noteHolds notes what was lent, so that it is renewed.
func (s *Store) noteHolds(r *node.Request, checks []store.Check) {
	for group := range r.Groups() {
		if r.Charged(group) {
			for i := range group {
				if op := &group[i]; op.Hold != "" && !r.Decisions[op.Index].Exempt {
					s.holds.Add(&checks[op.Index])
				}
			}
		}
	}
}

// giveBackLost gives back what may have been lent by a call whose answer never came.
func (s *Store) giveBackLost(checks []store.Check) {
	for i := range checks {
		if checks[i].Hold != "" && !checks[i].Peek {
			s.outbox.Add(store.Adjustment{Check: checks[i], Delta: -checks[i].Cost})
		}
	}
}

// refuseFromCache refuses a request that could not be answered in time, if one of its checks was
// refused a moment before it came. Otherwise requests would pass that are over their limit,
// because many ask at once. What would be refused for the sake of that check is not looked
// at, and what is decided by itself is left alone. If the request was sent, a slot may have become free by then, and
// all be charged. Of that only the slot is given back.
func (s *Store) refuseFromCache(checks []store.Check, decisions []algorithms.Decision, known *indexes, came time.Duration, sent bool) bool {
	refused := false
	for i := range checks {
		c := &checks[i]
		if known.has(i) {
			continue
		}
		decisions[i] = algorithms.Decision{Allowed: true, Exempt: c.Alone()}
		if _, lends := c.Rule.Algorithm().(algorithms.Lender); c.Peek || lends && sent && len(checks) > 1 {
			continue
		}
		if d, ok := s.cache.Recent(c, c.Rule.At(s.date(c.Rule)), came); ok {
			decisions[i] = d
			refused = refused || !c.Independent
		}
	}
	return refused
}
