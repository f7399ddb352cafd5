package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// closeTimeout bounds all that is sent when the store is closed.
	closeTimeout = time.Second

	// closePause is between two tries when the store is closed.
	closePause = 50 * time.Millisecond

	// lingerFor bounds how long a closed store tries to send what waits, if its Redis does not
	// come back: its options may have been changed because that is gone for good.
	lingerFor = time.Hour
)

// Adjust implements [store.Store].
func (s *Store) Adjust(adjustments ...store.Adjustment) {
	adjustments = s.adjustLent(adjustments)
	for i := range adjustments {
		a := &adjustments[i]
		if a.Hold != "" && a.Delta <= -a.Cost {
			s.holds.Remove(a.Hold)
		}
		if a.Delta < 0 {
			s.cache.Delete(a.Rule.At(s.date(a.Rule)), a.Key)
		}
	}
	s.outbox.Add(adjustments...)
}

// runOutbox renews leases and sends adjustments, in this order, so that nothing is renewed after
// it was given back. It ends when the store is closed.
func (s *Store) runOutbox() {
	defer close(s.done)
	ctx := context.Background()
	renewal := time.NewTicker(store.RenewInterval)
	defer renewal.Stop()
	reported := uint64(0)
	for {
		select {
		case <-s.outbox.Wake:
			s.sendWaiting(ctx)
		case <-renewal.C:
			s.renew(ctx)
			if s.outbox.Retry() {
				s.sendWaiting(ctx)
			}
			reported = s.warnLost(reported, false)
		case <-s.quit:
			s.slots.Close() // what is kept is held too
			s.giveBackHolds()
			s.sendLast()
			if s.lingers = !s.ends() && s.outbox.Retry(); s.lingers {
				go s.linger(reported)
				return
			}
			s.outbox.DropAll()
			s.warnLost(reported, true)
			return
		}
	}
}

// renew renews what is due. What cannot be renewed now is due again soon enough.
func (s *Store) renew(ctx context.Context) {
	due := s.holds.Due(s.clock())
	for len(due) > 0 {
		n := min(len(due), outbox.BatchSize)
		ops, sent := make([]protocol.Op, n), s.loans.Now()
		for i := range ops {
			ops[i] = s.op(&due[i], protocol.Renew, due[i].Hold, 0)
		}
		errs, _ := s.doAll(ctx, ops)
		for i := range ops {
			if errs[i] == nil && keepsSlots(due[i].Rule) {
				s.slots.Renewed(due[i].Hold, sent, s.loans.Now())
			}
		}
		due = due[n:]
	}
}

// giveBackHolds gives back all that is held, for requests that will not be served any more.
func (s *Store) giveBackHolds() {
	for _, c := range s.holds.All() {
		s.Adjust(store.Adjustment{Check: c, Delta: -c.Cost})
	}
}

// sendWaiting sends the adjustments that wait. Those that fail and may be repeated wait for the
// next renewal, while the others are sent, which may be for a healthy node.
//
// Late costs are sent first, in separate calls. A Redis without memory refuses a script only until
// it has written something, and what is given back is always written.
func (s *Store) sendWaiting(ctx context.Context) {
	s.sending.Lock()
	defer s.sending.Unlock()
	for {
		batch := s.outbox.Next()
		if len(batch) == 0 {
			return
		}
		var late, back []outbox.Adjustment
		for i := range batch {
			if batch[i].Delta > 0 {
				late = append(late, batch[i])
			} else {
				back = append(back, batch[i])
			}
		}
		again, failed := s.sendAdjustments(ctx, late)
		more, fails := s.sendAdjustments(ctx, back)
		s.outbox.Failed(append(again, more...), failed+fails == len(batch))
	}
}

// sendAdjustments returns the adjustments that are to be sent again, and how many have failed.
// What may have been carried out is sent again only if twice is the same as once: a refund
// that is made twice would let more pass than the limit, a cost refuse what is due.
func (s *Store) sendAdjustments(ctx context.Context, batch []outbox.Adjustment) (again []outbox.Adjustment, failed int) {
	var lent []outbox.Adjustment
	batch = slices.DeleteFunc(batch, func(a outbox.Adjustment) bool {
		if lendsParts(a.Rule) {
			lent = append(lent, a)
		}
		return lendsParts(a.Rule)
	})
	if len(lent) > 0 {
		again, failed = s.sendLentAdjustments(ctx, lent)
	}
	if len(batch) == 0 {
		return again, failed
	}
	ops := make([]protocol.Op, len(batch))
	for i := range batch {
		ops[i] = s.adjustOp(&batch[i].Adjustment)
	}
	errs, changed := s.doAll(ctx, ops)
	for i, err := range errs {
		if err == nil {
			if done := batch[i].Done; done != nil {
				done(changed[i])
			}
			continue
		}
		failed++
		if node.MayHaveRun(err) && !batch[i].Repeatable() {
			s.outbox.Drop(err, batch[i])
		} else {
			again = append(again, batch[i])
		}
	}
	return again, failed
}

// adjustOp makes an adjustment ready for the script: of the state that was charged, whatever
// the key has by now.
func (s *Store) adjustOp(a *store.Adjustment) protocol.Op {
	op := s.op(&a.Check, protocol.Adjust, protocol.EncodeAdjustment(a), 0)
	if a.Override != "" {
		prepared, states := a.Rule.ChargedBy(a.Override, s.date(a.Rule))
		op.Prepared, op.Key = prepared, s.keys.state(states.ID, a.Key)
	}
	return op
}

// sendLast tries to send all that waits, for as long as one call may take. If the process
// lives on, there is time for what Redis does not take at once, see linger.
func (s *Store) sendLast() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for again := false; s.outbox.Retry(); again = true {
		if again {
			if !s.ends() {
				break
			}
			select {
			case <-time.After(closePause):
			case <-ctx.Done():
				return
			}
		}
		s.sendWaiting(ctx)
	}
}

// linger sends what still waits when the store is closed because a config was replaced, as
// far as it matters, because the process lives on. Then it closes the connections.
func (s *Store) linger(reported uint64) {
	retry := time.NewTicker(store.RenewInterval)
	defer retry.Stop()
	for end := time.Now().Add(lingerFor); s.outbox.Retry() && time.Now().Before(end); <-retry.C {
		s.sendWaiting(context.Background())
	}
	s.outbox.DropAll()
	s.warnLost(reported, true)
	_ = s.topology.Close()
}

// doAll has the script carry out each operation, in a group of its own. It returns an error
// for each that failed, and of adjustments whether they changed anything.
func (s *Store) doAll(ctx context.Context, ops []protocol.Op) (errs []error, changed []bool) {
	errs, changed = make([]error, len(ops)), make([]bool, len(ops))
	requests, nodes := make([]*node.Request, len(ops)), make([]*node.Node, len(ops))
	byNode := make(map[*node.Node][]*node.Request)
	for i := range ops {
		n, err := s.topology.Node(ctx, ops[i].Slot)
		if err != nil {
			errs[i] = node.Unsent(err)
			continue
		}
		r := node.NewRequest()
		r.Slot, r.Ops = ops[i].Slot, append(r.Ops, ops[i])
		r.EndGroup()
		r.Expect(1)
		requests[i], nodes[i] = r, n
		byNode[n] = append(byNode[n], r)
	}
	var wait sync.WaitGroup
	for n, requests := range byNode {
		wait.Go(func() { n.DoAll(ctx, requests) })
	}
	wait.Wait()
	for i, r := range requests {
		switch {
		case r == nil:
		case redis.IsTryAgainError(r.Err) || node.Elsewhere(r.Err):
			wait.Go(func() { errs[i] = s.doElsewhere(ctx, nodes[i], r) })
		default:
			errs[i] = r.Err
		}
	}
	wait.Wait()
	for i, r := range requests {
		changed[i] = r != nil && errs[i] == nil && r.Decisions[0].Quota > 0
	}
	return errs, changed
}

// doElsewhere repeats what a node has refused because the slot is elsewhere or on its
// way, where the nodes say.
func (s *Store) doElsewhere(ctx context.Context, n *node.Node, r *node.Request) error {
	err := r.Err
	if r.Shared() {
		err = n.DoAgain(ctx, r, false)
	}
	for hop := 1; err != nil; hop++ {
		to, asking, left := s.topology.Redirect(ctx, r.Slot, err, hop)
		if to == nil {
			return left
		}
		err = to.DoAgain(ctx, r, asking)
	}
	return nil
}
