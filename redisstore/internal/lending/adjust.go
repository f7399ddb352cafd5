package lending

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Late costs of requests in zones that lend are paid by what this process holds, and Redis charges the
// rest. If nothing is free after that, this process spends nothing of what it was lent before: what is
// charged and what is lent may exceed the limit together.

// Adjust implements [layer.Layer]. It carries out what it can without Redis.
func (l *Layer) Adjust(adjustments ...layer.Adjustment) {
	if !slices.ContainsFunc(adjustments, func(a layer.Adjustment) bool { return a.Rule.LendsParts() }) {
		l.below.Adjust(adjustments...)
		return
	}
	left := make([]layer.Adjustment, 0, len(adjustments))
	for _, a := range adjustments {
		switch {
		case !l.adjustLoan(&a):
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
			if last, ok := e.Last(l.Loans.Now()); ok {
				go l.sendLoans(context.Background(), []loans.Due{last})
			}
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

// giveBackCharge gives back what a check has charged.
func (l *Layer) giveBackCharge(c *store.Check, d *algorithms.Decision) {
	if c.Alone() || c.Cost == 0 || d.Exempt {
		return
	}
	l.Adjust(layer.Adjustment{Adjustment: store.GiveBack(c, d)})
}
