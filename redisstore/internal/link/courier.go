package link

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// CloseTimeout bounds all that is sent when the store is closed.
	CloseTimeout = time.Second

	// closePause is between two tries when the store is closed.
	closePause = 50 * time.Millisecond

	// lingerFor bounds how long a closed store tries to send what waits, if its Redis does not
	// come back: its options may have been changed because that is gone for good.
	lingerFor = time.Hour
)

// Adjust implements [layer.Layer].
func (l *Link) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		if a := &adjustments[i]; a.LeaseID != "" && a.Delta <= -a.Cost {
			l.Leases.Remove(a.LeaseID)
		}
	}
	l.Outbox.Add(adjustments...)
}

// Run renews leases, and sends adjustments, in this order, so that nothing is renewed after
// it was given back. If there is more than one thing to do, it ends when the link is done, or else renews first.
func (l *Link) Run() {
	defer close(l.done)
	ctx := context.Background()
	renewal := time.NewTicker(store.RenewInterval)
	defer renewal.Stop()
	reported := uint64(0)
	for {
		due := false
		select {
		case <-l.Outbox.Wake:
		case <-renewal.C:
			due = true
		case <-l.Done:
		}
		select {
		case <-renewal.C:
			due = true
		default:
		}
		select {
		case <-l.Done:
			l.endLeases()
			l.sendLast()
			if l.lingers = !l.Ends() && l.Outbox.Retry(); l.lingers {
				go l.linger(reported)
				return
			}
			l.Outbox.DropAll()
			l.warnLost(reported, true)
			return
		default:
		}
		if due {
			l.renew(ctx)
		}
		if !due || l.Outbox.Retry() {
			l.SendWaiting(ctx)
		}
		if due {
			reported = l.warnLost(reported, false)
		}
	}
}

// Close returns when all was given back, and closes the connections unless something still waits. Done must
// be closed.
func (l *Link) Close() error {
	<-l.done
	if l.lingers {
		return nil // the connections are needed
	}
	return l.Servers.Close()
}

// renew renews what is due. What cannot be renewed now is due again soon enough.
func (l *Link) renew(ctx context.Context) {
	for due := range slices.Chunk(l.Leases.Due(l.Clock()), outbox.BatchSize) {
		l.Renew(ctx, due)
	}
}

// Renew renews leases, and returns the requests that did, each with its error.
func (l *Link) Renew(ctx context.Context, held []store.Check) []*node.Request {
	ops := make([]protocol.Op, len(held))
	for i := range ops {
		ops[i] = l.op(&held[i], protocol.Renew, held[i].LeaseID, 0)
	}
	return l.doAll(ctx, ops)
}

// endLeases gives back all that is held, for requests that will not be served any more.
func (l *Link) endLeases() {
	for _, c := range l.Leases.All() {
		l.Adjust(store.Adjustment{Check: c, Delta: -c.Cost})
	}
}

// SendWaiting sends the adjustments that wait. Those that fail and may be repeated wait for the
// next renewal, while the others are sent, which may be for a healthy node.
//
// Late costs are sent first, in separate calls. A Redis without memory refuses a script only until
// it has written something, and what is given back is always written.
func (l *Link) SendWaiting(ctx context.Context) {
	l.sending.Lock()
	defer l.sending.Unlock()
	for {
		batch := l.Outbox.Next()
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
		again, failed := l.sendAdjustments(ctx, late)
		more, fails := l.sendAdjustments(ctx, back)
		l.Outbox.Failed(append(again, more...), failed+fails == len(batch))
	}
}

// sendAdjustments returns the adjustments that are to be sent again, and how many have failed.
// What may have been carried out is sent again only if twice is the same as once: a refund
// that is made twice would let more pass than the limit, a cost refuse what is due.
func (l *Link) sendAdjustments(ctx context.Context, batch []outbox.Adjustment) (again []outbox.Adjustment, failed int) {
	if len(batch) == 0 {
		return nil, 0
	}
	ops := make([]protocol.Op, len(batch))
	for i := range batch {
		ops[i] = l.adjustOp(&batch[i].Adjustment)
	}
	for i, r := range l.doAll(ctx, ops) {
		if r.Err == nil {
			changed := r.Decisions[0].Quota > 0
			if done := batch[i].Done; done != nil {
				done(changed)
			}
			if !changed {
				l.Outbox.Absent(&batch[i])
			}
			continue
		}
		failed++
		if node.MayHaveRun(r.Err) && !batch[i].Repeatable() {
			l.Outbox.Drop(r.Err, batch[i])
		} else {
			again = append(again, batch[i])
		}
	}
	return again, failed
}

// adjustOp makes an adjustment ready for the script: of the state that was charged, whatever
// the key has by now.
func (l *Link) adjustOp(a *store.Adjustment) protocol.Op {
	sent := *a
	if a.Delta > 0 {
		sent.Turn = outbox.Until(a)
	}
	op := l.op(&a.Check, protocol.Adjust, protocol.EncodeAdjustment(&sent), 0)
	if a.Override != "" {
		prepared, states := a.Rule.ChargedBy(a.Override, l.Today.Of(a.Rule))
		op.Prepared, op.Key = prepared, l.Keys.State(states.ID, a.Key)
	}
	return op
}

// sendLast tries to send all that waits, for as long as one call may take. If the process
// lives on, there is time for what Redis does not take at once, see linger.
func (l *Link) sendLast() {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	for again := false; l.Outbox.Retry(); again = true {
		if again {
			if !l.Ends() {
				break
			}
			select {
			case <-time.After(closePause):
			case <-ctx.Done():
				return
			}
		}
		l.SendWaiting(ctx)
	}
}

// linger sends what still waits when the store is closed because a config was replaced, as
// far as it matters, because the process lives on. Then it closes the connections.
func (l *Link) linger(reported uint64) {
	retry := time.NewTicker(store.RenewInterval)
	defer retry.Stop()
	for end := time.Now().Add(lingerFor); l.Outbox.Retry() && time.Now().Before(end); <-retry.C {
		l.SendWaiting(context.Background())
	}
	l.Outbox.DropAll()
	l.warnLost(reported, true)
	_ = l.Servers.Close()
}

// doAll has the script carry out each operation, in a request of its own, and returns the requests with their errors.
func (l *Link) doAll(ctx context.Context, ops []protocol.Op) []*node.Request {
	requests, asked := make([]*node.Request, len(ops)), make([]Server, len(ops))
	at := make(map[Server][]*node.Request)
	for i := range ops {
		r := node.NewRequest()
		r.Slot, r.Ops = l.Servers.Slot(ops[i].Key), append(r.Ops, ops[i])
		r.EndGroup()
		r.Expect(1)
		requests[i] = r
		s, err := l.Servers.Node(ctx, r.Slot)
		if err != nil {
			r.Err = node.Unsent(err)
			continue
		}
		asked[i] = s
		at[s] = append(at[s], r)
	}
	var wait sync.WaitGroup
	for s, some := range at {
		wait.Go(func() { s.DoAll(ctx, some, false) })
	}
	wait.Wait()
	for i, r := range requests {
		if s := asked[i]; s != nil && r.Err != nil {
			wait.Go(func() {
				r.Err = l.redirected(ctx, s, r.Slot, r.Err, func(s Server, asking bool) error {
					s.DoAll(ctx, []*node.Request{r}, asking)
					return r.Err
				})
			})
		}
	}
	wait.Wait()
	return requests
}

// Stats returns what waits, what is held, and what was lost.
func (l *Link) Stats() store.Stats {
	s := store.Stats{InUse: l.Leases.ByZone(), Waiting: l.Outbox.Len()}
	s.Lost, _ = l.Outbox.Lost()
	return s
}

// Waiting returns how many adjustments wait, when none is under way.
func (l *Link) Waiting() int {
	l.sending.Lock()
	defer l.sending.Unlock()
	return l.Outbox.Len()
}

// warnLost says that adjustments were given up, if there are more than were reported so far,
// and returns how many have been reported now. The last warning does not wait for its minute.
func (l *Link) warnLost(reported uint64, last bool) uint64 {
	lost, cause := l.Outbox.Lost()
	if lost == reported || !last && !l.losing.Allow() {
		return reported
	}
	l.Logger().Warn("refunds and late costs were given up because redis has not confirmed them: none is carried out twice",
		zap.Uint64("count", lost-reported), zap.String("key_prefix", string(l.Keys)), zap.Error(cause))
	return lost
}
