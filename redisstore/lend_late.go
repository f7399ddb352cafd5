package redisstore

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
func (s *Store) payLate(a *layer.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Delta <= 0 {
		return false
	}
	e := s.loans.Known(a.Rule, a.Key)
	if e == nil {
		return false
	}
	a.Delta -= e.Late(s.loans.Now(), a.Delta)
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
func (s *Store) noteLate(a *layer.Adjustment, free bool, err error) {
	if a.Delta <= 0 || err != nil && !node.MayHaveRun(err) || free {
		return
	}
	if e := s.loans.Known(a.Rule, a.Key); e != nil {
		e.Owes(s.loans.Now())
	}
}

// watch has the borrower told of an adjustment that Redis is sent.
func (s *Store) watch(a *layer.Adjustment) {
	if a.Rule.LendsParts() {
		sent := *a
		a.Sending = func(ctx context.Context) { s.awaitReport(ctx, &sent) }
		a.Sent = func(free bool, err error) { s.noteLate(&sent, free, err) }
	}
}
