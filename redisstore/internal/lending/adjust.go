package lending

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// Late costs of requests in zones that lend are paid by what this process holds, and Redis charges the
// rest. If nothing is free after that, this process spends nothing of what it was lent before: what is
// charged and what is lent may exceed the limit together.

// Adjust implements [layer.Layer].
func (l *Layer) Adjust(adjustments ...layer.Adjustment) { l.Layer.Adjust(l.adjustLent(adjustments)...) }

// adjustLent carries out what it can of adjustments without Redis, and returns the others.
func (l *Layer) adjustLent(adjustments []layer.Adjustment) []layer.Adjustment {
	if !slices.ContainsFunc(adjustments, func(a layer.Adjustment) bool { return a.Rule.Lend() > 0 }) {
		return adjustments
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
	return left
}

// adjustLoan gives a charge back to what this process holds, if it was not reported yet, or pays a late cost by that.
// It reports whether that was enough. Otherwise Redis is sent the rest, and the borrower hears of it.
func (l *Layer) adjustLoan(a *layer.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Override != "" { // under an override nothing is held
		return false
	}
	if e := l.Loans.Known(a.Rule, a.Key); e != nil && a.Delta != 0 {
		if a.Delta > 0 {
			a.Delta -= e.Late(l.Loans.Now(), a.Delta)
		}
		if a.Delta == 0 || a.Delta < 0 && e.Refund(l.Loans.Now(), a.At, -a.Delta) {
			return true
		}
	}
	sent := *a
	a.Sending = func(ctx context.Context) { l.awaitReport(ctx, &sent) }
	a.Sent = func(free bool, err error) { l.noteLate(&sent, free, err) }
	return false
}

// awaitReport waits until what is refunded has been reported, if that is under way.
func (l *Layer) awaitReport(ctx context.Context, a *layer.Adjustment) {
	if a.Delta >= 0 {
		return
	}
	e := l.Loans.Known(a.Rule, a.Key)
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

// noteLate tells the borrower of a key that Redis has charged a late cost, or may have, and that nothing is
// free since.
func (l *Layer) noteLate(a *layer.Adjustment, free bool, err error) {
	if a.Delta <= 0 || err != nil && !node.MayHaveRun(err) || free {
		return
	}
	if e := l.Loans.Known(a.Rule, a.Key); e != nil {
		e.Owes(l.Loans.Now())
	}
}
