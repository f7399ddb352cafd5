package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxReturns bounds what waits to be given back while Redis is away. Beyond it the
	// oldest are dropped: their leases end by themselves.
	maxReturns = 100_000

	// settleBatch is how many of them one call takes.
	settleBatch = 128

	// settleTimeout bounds such a call; nobody waits for it.
	settleTimeout = time.Second
)

// returns are the charges that wait to be given back.
type returns struct {
	sending sync.Mutex // held while a batch is under way
	mu      sync.Mutex
	waiting []store.Correction
	wake    chan struct{}
	quit    chan struct{}
	once    sync.Once
	done    chan struct{}
}

func (r *returns) init() {
	r.wake, r.quit, r.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// stop has what waits sent once more, and waits for that.
func (r *returns) stop() {
	r.once.Do(func() { close(r.quit) })
	<-r.done
}

func (r *returns) add(more ...store.Correction) {
	r.mu.Lock()
	r.waiting = append(r.waiting, more...)
	if over := len(r.waiting) - maxReturns; over > 0 {
		r.waiting = append(r.waiting[:0], r.waiting[over:]...)
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take takes a batch off the front.
func (r *returns) take() []store.Correction {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), settleBatch)
	batch := append([]store.Correction(nil), r.waiting[:n]...)
	r.waiting = append(r.waiting[:0], r.waiting[n:]...)
	return batch
}

// Settle implements [store.Store].
func (s *Store) Settle(corrections ...store.Correction) {
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
				if c := &checks[i.index]; c.Hold != "" && !q.decisions[i.index].Exempt {
					s.holds.Add(c)
				}
			}
		}
	}
}

// lost gives back what may have been lent by a call whose answer never came.
func (s *Store) lost(checks []store.Check) {
	for i := range checks {
		if checks[i].Hold != "" {
			s.returns.add(store.Correction{Check: checks[i], Delta: -checks[i].Cost})
		}
	}
}

// settle renews leases and gives back, in this order, so that nothing is renewed after
// it was given back. It ends when the store is closed.
func (s *Store) settle() {
	defer close(s.returns.done)
	renewal := time.NewTicker(store.RenewInterval)
	defer renewal.Stop()
	for {
		select {
		case <-s.returns.wake:
			s.giveBack()
		case <-renewal.C:
			s.renew()
			s.giveBack()
		case <-s.returns.quit:
			s.giveBack()
			return
		}
	}
}

// renew renews what is due. What cannot be renewed now is due again soon enough.
func (s *Store) renew() {
	due := s.holds.Due(time.Now())
	for len(due) > 0 {
		n := min(len(due), settleBatch)
		items := make([]item, n)
		for i := range items {
			items[i] = s.item(&due[i], opRenew, due[i].Hold, 0)
		}
		s.settleAll(items)
		due = due[n:]
	}
}

// giveBack sends what waits. What cannot be sent waits on, and is tried again with the
// next renewal; meanwhile the others go out, which may be for a node that is well.
func (s *Store) giveBack() {
	s.returns.sending.Lock()
	defer s.returns.sending.Unlock()
	var failed []store.Correction
	for {
		batch := s.returns.take()
		if len(batch) == 0 {
			break
		}
		items := make([]item, len(batch))
		for i := range batch {
			items[i] = s.item(&batch[i].Check, opCorrect, correction(&batch[i]), 0)
		}
		these := s.settleAll(items)
		for _, i := range these {
			failed = append(failed, batch[i])
		}
		if len(these) == len(batch) {
			break
		}
	}
	if len(failed) > 0 {
		s.returns.mu.Lock()
		s.returns.waiting = append(failed, s.returns.waiting...)
		s.returns.mu.Unlock()
	}
}

// settleAll has the script do something with each check, in a group of its own. It
// returns which of them failed.
func (s *Store) settleAll(items []item) (failed []int) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	calls := make(map[*lane]*call)
	errs := make([]error, len(items))
	asked := make([]*question, len(items))
	for i := range items {
		var l *lane
		if l, errs[i] = s.topology.lane(ctx, items[i].slot); errs[i] != nil {
			continue
		}
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
			if err := l.send(ctx, c); err != nil {
				for _, q := range c.questions {
					q.err = err
				}
			}
			c.free()
		})
	}
	wait.Wait()
	for i, q := range asked {
		if errs[i] != nil || q.err != nil {
			failed = append(failed, i)
		}
	}
	return failed
}
