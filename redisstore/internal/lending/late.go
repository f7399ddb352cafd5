package lending

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// Late costs of requests in zones that lend are paid by what this process holds, and Redis charges the
// rest. If nothing is free after that, this process spends nothing of what it was lent before: what is
// charged and what is lent may exceed the limit together.

// payLate pays a late cost by what this process holds, and reports whether that was enough. Otherwise the
// adjustment charges the rest.
func (l *Layer) payLate(a *layer.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Delta <= 0 {
		return false
	}
	e := l.Loans.Known(a.Rule, a.Key)
	if e == nil {
		return false
	}
	a.Delta -= e.Late(l.Loans.Now(), a.Delta)
	if a.Delta > 0 {
		return false
	}
	if a.Done != nil {
		a.Done(true)
	}
	return true
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

// watch lets the borrower know when Redis is sent an adjustment, and what it answers.
func (l *Layer) watch(a *layer.Adjustment) {
	if a.Rule.LendsParts() {
		sent := *a
		a.Sending = func(ctx context.Context) { l.awaitReport(ctx, &sent) }
		a.Sent = func(free bool, err error) { l.noteLate(&sent, free, err) }
	}
}
