// Package loans is what this process holds of keys that come often: a [lend.Borrower] for each of
// them. It asks nothing of a server.
package loans

import (
	"context"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Entry is the borrower of one key under one limit.
type Entry struct {
	Rule *store.Rule
	Key  string

	mu   sync.Mutex
	b    *lend.Borrower
	over chan struct{} // closed when the ask under way is over

	keyRules *store.KeyRules // of the request that has asked last
	gone     bool            // the table has it no longer

	*schedule
	planned time.Duration // the next look; the schedule's lock is held
}

// Next returns what a request does next. For [lend.Refused] it fills in the decision. For
// [lend.Wait] it returns what is closed when the ask is over. In a zone with a ban the store sees each refusal
// but those of a key that is banned.
func (e *Entry) Next(now lend.Moment, c *store.Check, while time.Duration, d *algorithms.Decision) (lend.Next, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return lend.Alone, nil
	}
	next := e.b.Next(now, c.Cost, while)
	switch next {
	case lend.Reserved:
		*d = e.b.Allowed(now)
	case lend.Refused:
		if c.KeyRules != nil && c.KeyRules.Ban != nil && !e.b.Banned() {
			return lend.Alone, nil
		}
		*d = e.b.Refused(now, c.Cost)
	case lend.Wait:
		return next, e.over
	case lend.Alone, lend.Begin:
	}
	return next, nil
}

// SpendNow spends a cost of what is held, and reports whether it did. Then it fills in the decision. It
// does at once what Next and Spend do.
func (e *Entry) SpendNow(now lend.Moment, cost int64, d *algorithms.Decision) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone || !e.b.Reserve(now, cost, 0) {
		return false
	}
	*d = e.b.Allowed(now)
	return e.b.Spend(now, cost)
}

// want counts the demand of a request, and reports whether to borrow for it.
func (e *Entry) want(now lend.Moment, cost int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Want(now, cost)
}

// borrows reports whether to borrow for a request that was counted.
func (e *Entry) borrows(now lend.Moment) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Borrows(now)
}

// Begin begins an ask for a request, unless one is under way. With borrow the cost is lent.
func (e *Entry) Begin(now lend.Moment, c *store.Check, borrow bool) (lend.Ask, bool) {
	return e.begin(func() (lend.Ask, bool) {
		e.keyRules = c.KeyRules
		if borrow {
			return e.b.Borrow(now, c.Cost), true
		}
		return e.b.Begin(now, c.Cost), true
	})
}

// Alone returns an ask of a request that asks for itself.
func (e *Entry) Alone(cost int64) lend.Ask { return e.b.Alone(cost) }

// begin begins an ask, unless one is under way or none is to be made.
func (e *Entry) begin(ask func() (lend.Ask, bool)) (a lend.Ask, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone || e.b.Asks() {
		return a, false
	}
	if a, ok = ask(); ok {
		e.over = make(chan struct{})
	}
	return a, ok
}

// End takes the answer to an ask. Of what was lent, it reserves a cost, if there is one.
func (e *Entry) End(now lend.Moment, number int64, answer lend.Answer, reserve int64, while time.Duration) (reserved bool) {
	defer e.plan(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.b.End(now, number, answer, reserve) {
		close(e.over)
	}
	return reserve > 0 && e.b.Next(now, reserve, while) == lend.Reserved
}

// Fail gives an ask up, which may have been carried out or not.
func (e *Entry) Fail(now lend.Moment, number int64, mayHaveRun bool) {
	defer e.plan(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.b.Fail(number, mayHaveRun) {
		close(e.over)
	}
}

// ChargedAlone tells that a request that asked for itself was charged, and how much is left since.
func (e *Entry) ChargedAlone(at, remaining int64) {
	e.mu.Lock()
	e.b.ChargedAlone(at, remaining)
	e.mu.Unlock()
}

// RefusedAlone tells that a request that asked for itself was refused, with so much left.
func (e *Entry) RefusedAlone(remaining int64) {
	e.mu.Lock()
	e.b.RefusedAlone(remaining)
	e.mu.Unlock()
}

// OverruledAlone tells that an override or a ban has decided a request that asked for itself. What is held is given up, and what is
// asked for, which may come later and be from before.
func (e *Entry) OverruledAlone(now lend.Moment) {
	e.mu.Lock()
	holds := e.b.Asks() || e.b.Live(now) > 0
	if holds {
		e.b.Void()
	}
	e.mu.Unlock()
	if holds {
		e.plan(now)
	}
}

// Spend spends what was reserved, and reports whether it did: if the loan has ended meanwhile, what
// was reserved is given up. It returns when that was, as At of decisions has it: an ask may have begun since
// the decision, and did not report it.
func (e *Entry) Spend(now lend.Moment, cost int64) (at int64, spent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.At(now), e.b.Spend(now, cost)
}

// Cancel gives up what was reserved.
func (e *Entry) Cancel(cost int64) {
	e.mu.Lock()
	e.b.Cancel(cost)
	e.mu.Unlock()
}

// Refund takes back what was spent at a time, if it was not reported yet.
func (e *Entry) Refund(now lend.Moment, at, cost int64) bool {
	e.mu.Lock()
	refunded := e.b.Refund(now, at, cost)
	e.mu.Unlock()
	if refunded {
		e.plan(now) // there was nothing to return if all was spent
	}
	return refunded
}

// Last returns the ask that gives back what is held, if the loan ends before the next look may come: then all of it would count
// as spent.
func (e *Entry) Last(now lend.Moment) (due Due, ok bool) {
	a, ok := e.begin(func() (lend.Ask, bool) {
		if !e.b.Ends(now) {
			return lend.Ask{}, false
		}
		return e.b.Return(now), true
	})
	return Due{e, a}, ok
}

// Late spends what is held on a late cost, and returns how much of it is paid.
func (e *Entry) Late(now lend.Moment, cost int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return 0
	}
	return e.b.Late(now, cost)
}

// Owes tells that the store has charged a late cost, and that nothing is free since.
func (e *Entry) Owes(now lend.Moment) {
	defer e.plan(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.b.Owes()
}

// void gives up what is held, because other rules may hold for the key.
func (e *Entry) void(now lend.Moment) {
	defer e.plan(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.b.Void()
}

// Rules are the key rules of the request that has asked last.
func (e *Entry) Rules() *store.KeyRules {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keyRules
}

// AwaitReport waits until the ask is over that reports what was spent at a time, if it is under way.
func (e *Entry) AwaitReport(ctx context.Context, at int64) {
	e.mu.Lock()
	reports, over := e.b.Reports(at), e.over
	e.mu.Unlock()
	if !reports {
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// due returns the ask that is due, if one is.
func (e *Entry) due(now lend.Moment) (a lend.Ask, ok bool) {
	return e.begin(func() (lend.Ask, bool) {
		switch renew, giveBack := e.b.Due(now); {
		case renew:
			return e.b.Renew(now), true
		case giveBack:
			return e.b.Return(now), true
		}
		return lend.Ask{}, false
	})
}

// giveBack returns the ask that gives back what is held, if anything may be.
func (e *Entry) giveBack(now lend.Moment) (a lend.Ask, ok bool) {
	return e.begin(func() (lend.Ask, bool) {
		if !e.b.Holds(now) {
			return lend.Ask{}, false
		}
		return e.b.Return(now), true
	})
}

// UnderWay returns what is closed when the ask under way is over, or nil if none is.
func (e *Entry) UnderWay() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.b.Asks() {
		return nil
	}
	return e.over
}

// Spare returns what no request has reserved of what is held.
func (e *Entry) Spare(now lend.Moment) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Spare(now)
}

// live returns what may still be spent.
func (e *Entry) live(now lend.Moment) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.b.Live(now)
}
