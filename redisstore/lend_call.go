package redisstore

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxLendOps bounds the keys of one call that no request waits for.
	maxLendOps = 32

	// minTend is the shortest time between two looks at what is due.
	minTend = 5 * time.Millisecond
)

// lendOp makes a check ready for the script.
func (s *Store) lendOp(c *store.Check, ask lend.Ask, peek bool) protocol.LendOp {
	return protocol.LendOp{
		Rule: c.Rule, Prepared: c.Rule.At(s.date(c.Rule)), Key: s.keys.state(c.Rule.ID(), c.Key), Ask: ask, Peek: peek,
	}
}

// tendLoans renews what this process holds, and returns what it does not need, until the store is
// closed. Then it returns everything.
func (s *Store) tendLoans() {
	defer close(s.loansDone)
	select {
	case <-s.loans.Used:
	case <-s.quit:
		return
	}
	timer := time.NewTimer(lend.MinPeriod)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			for _, some := range s.batches(s.loans.Due(s.loans.Now())) {
				go s.sendLoans(context.Background(), some)
			}
			s.tendSlots()
			timer.Reset(max(minTend, s.loans.Period()/4))
		case <-s.quit:
			s.returnLoans()
			return
		}
	}
}

// returnLoans returns everything, also what comes with the answers that are still under way.
func (s *Store) returnLoans() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for again := true; again; {
		due, busy := s.loans.GiveBack(s.loans.Now())
		for _, some := range s.batches(due) {
			if ctx.Err() == nil {
				s.sendLoans(ctx, some)
			}
		}
		for _, over := range busy {
			select {
			case <-over:
			case <-ctx.Done():
				return
			}
		}
		again = len(busy) > 0
	}
}

// batches divides asks into those that share a call.
func (s *Store) batches(due []loans.Due) (batches [][]loans.Due) {
	for len(due) > 0 {
		n := min(len(due), s.lendCallSize())
		batches, due = append(batches, due[:n]), due[n:]
	}
	return batches
}

// sendLoans sends asks that no request waits for.
func (s *Store) sendLoans(ctx context.Context, due []loans.Due) {
	batch := make([]*node.Request, len(due))
	for i := range due {
		op := s.lendOp(&store.Check{Rule: due[i].Rule, Key: due[i].Key}, due[i].Ask, false)
		batch[i] = &node.Request{Lend: []protocol.LendOp{op}}
	}
	s.makeLendCall(ctx, batch)
	for i := range due {
		if batch[i].Err != nil || batch[i].Answers[0].Unwritten {
			due[i].Fail(s.loans.Now(), due[i].Ask.Number)
		} else {
			due[i].End(s.loans.Now(), due[i].Ask.Number, batch[i].Answers[0].Answer, 0, 0)
		}
	}
}

// refundLoan gives back a charge to what this process holds, if it was not reported yet. It reports
// whether it did.
func (s *Store) refundLoan(a store.Adjustment) bool {
	if !lendsParts(a.Rule) || a.Delta >= 0 {
		return false
	}
	e := s.loans.Known(a.Rule, a.Key)
	if e == nil || !e.Refund(s.loans.Now(), a.At, -a.Delta) {
		return false
	}
	if a.Done != nil {
		a.Done(true)
	}
	return true
}

// sendLentAdjustments carries out adjustments in zones that lend, as sendAdjustments does others: in
// one call, but in a Cluster.
func (s *Store) sendLentAdjustments(ctx context.Context, batch []outbox.Adjustment) (again []outbox.Adjustment, failed int) {
	requests := make([]*node.Request, len(batch))
	for i := range batch {
		s.awaitReport(ctx, &batch[i].Adjustment)
		op := s.lendOp(&batch[i].Check, lend.Ask{}, false)
		op.Adjustment = &batch[i].Adjustment
		requests[i] = &node.Request{Lend: []protocol.LendOp{op}}
	}
	for at, n := 0, s.lendCallSize(); at < len(batch); at += n {
		s.makeLendCall(ctx, requests[at:min(at+n, len(batch))])
	}
	for i, r := range requests {
		s.noteLate(&batch[i].Adjustment, r)
		switch done := batch[i].Done; {
		case r.Err == nil:
			if done != nil {
				done(r.Answers[0].Quota > 0)
			}
			continue
		case node.MayHaveRun(r.Err):
			s.outbox.Drop(r.Err, batch[i])
		default:
			again = append(again, batch[i])
		}
		failed++
	}
	return again, failed
}

// awaitReport waits until what is refunded has been reported, if that is under way.
func (s *Store) awaitReport(ctx context.Context, a *store.Adjustment) {
	if a.Delta >= 0 {
		return
	}
	e := s.loans.Known(a.Rule, a.Key)
	if e == nil {
		return
	}
	if over := e.Reporting(a.At); over != nil {
		select {
		case <-over:
		case <-ctx.Done():
		}
	}
}

// lendCallSize is how many keys may share a call that no request waits for: in a Cluster, each is
// alone.
func (s *Store) lendCallSize() int {
	if s.keys.cluster {
		return 1
	}
	return maxLendOps
}

// Lent implements [store.PartLender].
func (s *Store) Lent(ctx context.Context, rule *store.Rule, key string) (lent, borrowers int64, err error) {
	if !lendsParts(rule) {
		lent = s.slots.KeptOf(rule, key)
		return lent, min(lent, 1), nil
	}
	answers, err := s.callLend(ctx, []protocol.LendOp{s.lendOp(&store.Check{Rule: rule, Key: key}, lend.Ask{}, true)})
	if err != nil {
		return 0, 0, err
	}
	return answers[0].Lent, answers[0].Borrowers, nil
}

var _ store.PartLender = (*Store)(nil)
