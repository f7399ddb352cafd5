package redisstore

import (
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Late costs of requests in zones that lend are paid by what this process holds, and Redis charges the
// rest. If nothing is free after that, this process spends nothing of what it was lent before: what is
// charged and what is lent may exceed the limit together.

// payLate pays a late cost by what this process holds, and reports whether that was enough. Otherwise the
// adjustment charges the rest.
func (s *Store) payLate(a *store.Adjustment) bool {
	if !lendsParts(a.Rule) || a.Delta <= 0 {
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
func (s *Store) noteLate(a *store.Adjustment, r *node.Request) {
	if a.Delta <= 0 || r.Err != nil && !node.MayHaveRun(r.Err) || r.Err == nil && r.Answers[0].Remaining > 0 {
		return
	}
	if e := s.loans.Known(a.Rule, a.Key); e != nil {
		e.Owes(s.loans.Now())
	}
}
