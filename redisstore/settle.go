package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// settleBatch is how many corrections or renewals one call takes, which bounds how long
	// one keeps Redis from all others.
	settleBatch = 64

	// settleTimeout bounds such a call; nobody waits for it. When the store is closed, it
	// bounds all of them.
	settleTimeout = time.Second

	// lastPause is between two tries when the store is closed.
	lastPause = 50 * time.Millisecond
)

// Adjust implements [store.Store].
func (s *Store) Adjust(corrections ...store.Adjustment) {
	for i := range corrections {
		c := &corrections[i]
		if c.Hold != "" && c.Delta <= -c.Cost {
			s.holds.Remove(c.Hold)
		}
		if c.Delta < 0 {
			s.forget(c.Rule, c.Key)
		}
	}
	s.returns.add(corrections...)
}

// hold notes what was lent, so that it is renewed.
func (s *Store) hold(q *question, checks []store.Check) {
	for group := range q.each() {
		if q.charged(group) {
			for _, i := range group {
				if c := &checks[i.index]; i.hold != "" && !q.decisions[i.index].Exempt {
					s.holds.Add(c)
				}
			}
		}
	}
}

// giveUpHolds gives back all that is held, for requests that nobody will serve any more.
func (s *Store) giveUpHolds() {
	for _, c := range s.holds.All() {
		s.Adjust(store.Adjustment{Check: c, Delta: -c.Cost})
	}
}

// lost gives back what may have been lent by a call whose answer never came.
func (s *Store) lost(checks []store.Check) {
	for i := range checks {
		if checks[i].Hold != "" && !checks[i].Peek {
			s.returns.add(store.Adjustment{Check: checks[i], Delta: -checks[i].Cost})
		}
	}
}

// settle renews leases and carries out corrections, in this order, so that nothing is
// renewed after it was given back. It ends when the store is closed.
func (s *Store) settle() {
	defer close(s.returns.done)
	ctx := context.Background()
	renewal := time.NewTicker(store.RenewInterval)
	defer renewal.Stop()
	told := uint64(0)
	for {
		select {
		case <-s.returns.wake:
			s.giveBack(ctx)
		case <-renewal.C:
			s.renew(ctx)
			if s.returns.retry() {
				s.giveBack(ctx)
			}
			told = s.warnLost(told, false)
		case <-s.returns.quit:
			s.giveUpHolds()
			s.giveAllBack()
			if s.lingers = !s.ends() && s.returns.retry(); s.lingers {
				go s.linger(told)
				return
			}
			s.returns.abandon()
			s.warnLost(told, true)
			return
		}
	}
}

// renew renews what is due. What cannot be renewed now is due again soon enough.
func (s *Store) renew(ctx context.Context) {
	due := s.holds.Due(s.clock())
	for len(due) > 0 {
		n := min(len(due), settleBatch)
		items := make([]item, n)
		for i := range items {
			items[i] = s.item(&due[i], opRenew, due[i].Hold, 0)
		}
		s.settleAll(ctx, items)
		due = due[n:]
	}
}

// giveBack sends what waits. What failed and may be repeated waits on, for the next
// renewal; meanwhile the others go out, which may be for a node that is well.
//
// Late costs go first, in calls of their own. A Redis without memory refuses a script only
// until it has written something, and what is given back is written in any case.
func (s *Store) giveBack(ctx context.Context) {
	s.returns.sending.Lock()
	defer s.returns.sending.Unlock()
	for {
		batch := s.returns.take()
		if len(batch) == 0 {
			return
		}
		var late, back []pending
		for i := range batch {
			if batch[i].Delta > 0 {
				late = append(late, batch[i])
			} else {
				back = append(back, batch[i])
			}
		}
		again, failed := s.correct(ctx, late)
		more, fails := s.correct(ctx, back)
		s.returns.fail(append(again, more...), failed+fails == len(batch))
	}
}

// correct sends corrections, and returns those that are to be sent again and how many have
// failed. What may have been carried out is sent again only if twice is the same as once:
// a refund that is made twice would let more pass than the limit, a cost refuse what is due.
func (s *Store) correct(ctx context.Context, batch []pending) (again []pending, failed int) {
	if len(batch) == 0 {
		return nil, 0
	}
	items := make([]item, len(batch))
	for i := range batch {
		items[i] = s.corrected(&batch[i].Adjustment)
	}
	errs, changed := s.settleAll(ctx, items)
	for i, err := range errs {
		if err == nil {
			if told := batch[i].Done; told != nil {
				told(changed[i])
			}
			continue
		}
		failed++
		if mayHaveRun(err) && !batch[i].repeatable() {
			s.returns.giveUp(err, batch[i])
		} else {
			again = append(again, batch[i])
		}
	}
	return again, failed
}

// giveAllBack tries to send all that waits, for as long as one call may take. If the process
// lives on, there is time for what Redis does not take at once, see linger.
func (s *Store) giveAllBack() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	for again := false; s.returns.retry(); again = true {
		if again && (!s.ends() || pause(ctx, lastPause) != nil) {
			break
		}
		s.giveBack(ctx)
	}
}

// settleAll has the script do something with each check, in a group of its own. It
// returns an error for each that failed, and of corrections whether they changed anything.
func (s *Store) settleAll(ctx context.Context, items []item) (errs []error, changed []bool) {
	calls := make(map[*lane]*call)
	errs, changed = make([]error, len(items)), make([]bool, len(items))
	asked := make([]*question, len(items))
	lanes := make([]*lane, len(items))
	for i := range items {
		l, err := s.topology.lane(ctx, items[i].slot)
		if err != nil {
			errs[i] = unsentError{err}
			continue
		}
		lanes[i] = l
		if calls[l] == nil {
			calls[l] = newCall()
		}
		asked[i] = newQuestion()
		asked[i].alone(items[i])
		calls[l].add(asked[i])
	}
	var wait sync.WaitGroup
	for l, c := range calls {
		wait.Go(func() {
			l.settle(ctx, c)
			c.free()
		})
	}
	wait.Wait()
	for i, q := range asked {
		switch {
		case q == nil:
		case redis.IsTryAgainError(q.err) || elsewhere(q.err):
			wait.Go(func() { errs[i] = s.settleElsewhere(ctx, lanes[i], q) })
		default:
			errs[i] = q.err
		}
	}
	wait.Wait()
	for i, q := range asked {
		changed[i] = q != nil && errs[i] == nil && q.decisions[0].Quota > 0
	}
	return errs, changed
}

// settleElsewhere repeats what a node has refused because the slot is elsewhere or on its
// way, where the nodes say.
func (s *Store) settleElsewhere(ctx context.Context, l *lane, q *question) error {
	again := func(to *lane, asking bool) error {
		q.again(asking)
		c := newCall()
		c.add(q)
		to.settle(ctx, c)
		c.free()
		return q.err
	}
	err := q.err
	if q.shared {
		err = again(l, false)
	}
	return s.topology.follow(ctx, q.slot, err, again)
}

// settle makes a call for which nobody waits. Each question gets its error.
func (l *lane) settle(ctx context.Context, c *call) {
	err := l.answers(ctx)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		err = l.send(ctx, c)
	}
	for _, q := range c.questions {
		if q.err == nil {
			q.err = err
		}
	}
}

// answers finds out, if the last call has failed, whether Redis answers one that asks for
// nothing: one that hangs may carry out what it gets, and not say so. So of the
// corrections only those are in doubt that were under way when it began to hang. The
// breaker does not hear of it, for whoever answers may be unable to charge.
func (l *lane) answers(ctx context.Context) error {
	if !l.breaker.failing() {
		return nil
	}
	if l.breaker.open.Load() && !l.breaker.due() {
		return *l.breaker.cause.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	c := newCall()
	defer c.free()
	if err := l.evaluate(ctx, c, false); err != nil {
		return unsentError{err}
	}
	return nil
}
