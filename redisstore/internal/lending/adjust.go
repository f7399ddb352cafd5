package lending

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// Late costs of requests in zones that lend are paid by what this process holds, and Redis charges the
// rest. If nothing is free after that, this process spends nothing of what it was lent before: what is
// charged and what is lent may exceed the limit together.

// Adjust implements [layer.Layer]. It carries out what it can without Redis.
func (l *Layer) Adjust(adjustments ...layer.Adjustment) {
	if !slices.ContainsFunc(adjustments, func(a layer.Adjustment) bool { return a.Rule.Lend() > 0 }) {
		l.below.Adjust(adjustments...)
		return
	}
	left := make([]layer.Adjustment, 0, len(adjustments))
	for _, a := range adjustments {
		switch {
		case !l.adjustLoan(&a) && !l.releaseSlot(&a):
			left = append(left, a)
		case a.Done != nil:
			a.Done(true)
		}
	}
	l.below.Adjust(left...)
}

// adjustLoan gives a charge back to what this process holds, if it was not reported yet, or pays a late cost by that.
// It reports whether that was enough. Otherwise Redis is sent the rest, and the borrower hears of it. What is refunded
// waits until it has been reported, if that is under way.
func (l *Layer) adjustLoan(a *layer.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Override != "" { // under an override nothing is held
		return false
	}
	rule, key, at := a.Rule, a.Key, a.At
	known := func() *loans.Entry { return l.Loans.Known(rule, key) } // it may be another one later
	if e := known(); e != nil {
		if a.Delta > 0 {
			if a.Delta -= e.Late(l.Loans.Now(), a.Delta); a.Delta == 0 {
				return true
			}
		} else if a.Delta < 0 && e.Refund(l.Loans.Now(), at, -a.Delta) {
			return true
		}
	}
	if a.Delta < 0 {
		a.Sending = func(ctx context.Context) {
			if e := known(); e != nil {
				e.AwaitReport(ctx, at)
			}
		}
	} else if a.Delta > 0 {
		a.Sent = func(free bool, err error) {
			if e := known(); e != nil && !free && (err == nil || node.MayHaveRun(err)) {
				e.Owes(l.Loans.Now())
			}
		}
	}
	return false
}

// releaseSlot keeps the slot of a request that has ended, and reports whether it did. Otherwise the
// adjustment gives it back, by its own name.
func (l *Layer) releaseSlot(a *layer.Adjustment) bool {
	if !a.Rule.KeepsSlots() || a.LeaseID == "" || a.Delta > -a.Cost {
		return false
	}
	fate, name := l.Slots.Release(a.LeaseID, l.Loans.Now(), l.Processes())
	switch fate {
	case loans.Kept:
		return true
	case loans.Back:
		a.LeaseID = name
	case loans.Unknown:
	}
	return false
}
