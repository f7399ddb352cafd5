package lending

import (
	"context"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// minTend is the shortest time between two looks at what is due.
const minTend = 5 * time.Millisecond

// Tend renews loans of parts, which the link does not know, and returns what this process does not need, slots
// too, until the store is closed. Then it returns everything.
func (l *Layer) Tend() {
	defer close(l.done)
	select {
	case <-l.Loans.Used:
	case <-l.Done:
		return
	}
	if l.Changes != nil {
		go l.watch()
	}
	timer := time.NewTimer(lend.MinPeriod)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			for some := range slices.Chunk(l.Loans.Due(l.Loans.Now()), l.PerCall) {
				go l.sendLoans(context.Background(), some)
			}
			l.tendSlots()
			timer.Reset(max(minTend, l.Loans.Period()/4))
		case <-l.Done:
			l.returnLoans()
			return
		}
	}
}

// returnLoans returns everything, also what comes with the answers that are still under way.
func (l *Layer) returnLoans() {
	ctx, cancel := context.WithTimeout(context.Background(), link.CloseTimeout)
	defer cancel()
	for again := true; again; {
		due, busy := l.Loans.GiveBack(l.Loans.Now())
		for some := range slices.Chunk(due, l.PerCall) {
			if ctx.Err() == nil {
				l.sendLoans(ctx, some)
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
func (l *Layer) sendLoans(ctx context.Context, due []loans.Due) {
	asks := make([]*link.Ask, len(due))
	for i := range due {
		asks[i] = &link.Ask{Check: &store.Check{Rule: due[i].Rule, Key: due[i].Key, KeyRules: due[i].Rules()}, Ask: due[i].Ask}
	}
	l.Lender.AskEach(ctx, asks)
	for i, a := range asks {
		if a.Err != nil || a.Unwritten {
			due[i].Fail(l.Loans.Now(), due[i].Ask.Number)
		} else {
			due[i].End(l.Loans.Now(), due[i].Ask.Number, a.LendAnswer.Answer, 0, 0)
		}
	}
}

// Lent implements [store.PartLender].
func (l *Layer) Lent(ctx context.Context, rule *store.Rule, key string) (lent, borrowers int64, err error) {
	if !rule.LendsParts() {
		lent = l.Slots.KeptOf(rule, key)
		return lent, min(lent, 1), nil
	}
	a := link.Ask{Check: &store.Check{Rule: rule, Key: key}, Peek: true}
	if err := l.Lender.AskTogether(ctx, []*link.Ask{&a}); err != nil {
		return 0, 0, err
	}
	return a.Lent, a.Borrowers, nil
}

// tendSlots gives back the slots that are not needed, and asks what is free.
func (l *Layer) tendSlots() {
	now := l.Loans.Now()
	back, peeks := l.Slots.Due(now, l.Processes())
	l.giveBackSlots(back)
	for some := range slices.Chunk(peeks, l.PerCall) {
		go func() {
			decisions := make([]algorithms.Decision, len(some))
			if l.below.Take(context.Background(), some, decisions) != nil {
				return
			}
			for i := range some {
				free := decisions[i].Remaining
				if decisions[i].Override != "" {
					free = 0 // see Told
				}
				l.Slots.Free(&some[i], now, free)
			}
		}()
	}
}

// giveBackSlots gives back slots that nobody uses. Until they have been sent, asks for their keys wait.
func (l *Layer) giveBackSlots(back []store.Adjustment) {
	if len(back) == 0 {
		return
	}
	adjustments := layer.Of(back...)
	for i := range adjustments {
		adjustments[i].Sent = func(bool, error) { l.Slots.Returned(&back[i].Check) }
	}
	l.below.Adjust(adjustments...)
}

// awaitReturns waits for what was given back of the keys of checks, and could be overtaken.
func (l *Layer) awaitReturns(ctx context.Context, checks []store.Check) {
	for i := range checks {
		if c := &checks[i]; c.Rule.KeepsSlots() {
			l.Slots.AwaitReturns(ctx, c, l.Loans.Now(), l.Timeout/2)
		}
	}
}
