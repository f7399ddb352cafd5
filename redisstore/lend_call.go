package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// minTend is the shortest time between two looks at what is due.
const minTend = 5 * time.Millisecond

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
			for some := range slices.Chunk(s.loans.Due(s.loans.Now()), s.link.PerCall) {
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
	ctx, cancel := context.WithTimeout(context.Background(), link.CloseTimeout)
	defer cancel()
	for again := true; again; {
		due, busy := s.loans.GiveBack(s.loans.Now())
		for some := range slices.Chunk(due, s.link.PerCall) {
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

// sendLoans sends asks that no request waits for.
func (s *Store) sendLoans(ctx context.Context, due []loans.Due) {
	asks := make([]*link.Ask, len(due))
	for i := range due {
		asks[i] = &link.Ask{Check: &store.Check{Rule: due[i].Rule, Key: due[i].Key}, Ask: due[i].Ask}
	}
	s.link.AskEach(ctx, asks)
	for i, a := range asks {
		if a.Err != nil || a.Unwritten {
			due[i].Fail(s.loans.Now(), due[i].Ask.Number)
		} else {
			due[i].End(s.loans.Now(), due[i].Ask.Number, a.LendAnswer.Answer, 0, 0)
		}
	}
}

// refundLoan gives back a charge to what this process holds, if it was not reported yet. It reports
// whether it did.
func (s *Store) refundLoan(a *layer.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Delta >= 0 {
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

// awaitReport waits until what is refunded has been reported, if that is under way.
func (s *Store) awaitReport(ctx context.Context, a *layer.Adjustment) {
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

// Lent implements [store.PartLender].
func (s *Store) Lent(ctx context.Context, rule *store.Rule, key string) (lent, borrowers int64, err error) {
	if !rule.LendsParts() {
		lent = s.slots.KeptOf(rule, key)
		return lent, min(lent, 1), nil
	}
	a := link.Ask{Check: &store.Check{Rule: rule, Key: key}, Peek: true}
	if err := s.link.AskTogether(ctx, []*link.Ask{&a}); err != nil {
		return 0, 0, err
	}
	return a.Lent, a.Borrowers, nil
}

var _ store.PartLender = (*Store)(nil)
