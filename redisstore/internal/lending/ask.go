package lending

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxRounds is how often a request waits for what others ask before it asks for itself.
const maxRounds = 8

// lentRequest is a request that meets zones which lend.
type lentRequest struct {
	came      lend.Moment
	checks    []store.Check
	decisions []algorithms.Decision

	unlent layer.Set // checks that are asked for as in zones that do not lend
	others int       // how many these are
	alone  layer.Set // checks that are decided by themselves, before the others, and are not asked for again
	asked  bool      // the store, by this request or by one that it has waited for

	patience time.Duration // how long after it came it waits for what others ask
	again    int           // how often it was decided again: then it asks as its borrower does, which reports what came too late
	spends   bool          // it was decided again, and asks no more: there is no time

	together []lentCheck // the other checks
	reserves bool        // what passes of these is only reserved until unlent ones are decided
	split    bool        // no single call can decide them
	moves    bool        // their slot migrates, so no call may have several keys
	while    time.Duration
	room     [4]lentCheck
}

// lentCheck is a check of a zone that lends.
type lentCheck struct {
	*store.Check
	index int          // among the caller's checks
	entry *loans.Entry // nil if the key does not come often
	next  lend.Next
	ask   lend.Ask
	own   bool // it was refused only because of what this process holds

	charged int64 // the time at which Redis has charged the cost; 0: it has not
}

// decideOnce is decideTogether without the look again.
func (l *Layer) decideOnce(ctx context.Context, r *lentRequest) (bool, error) {
	var patience *time.Timer // for what others ask
	for round := 0; ; round++ {
		now := l.Loans.Now()
		left := r.patience - (now.Mono - r.came.Mono)
		r.spends = r.again > 0 && left <= 0
		refused, asks := -1, 0
		var other <-chan struct{}
		for i := range r.together {
			c := &r.together[i]
			if c.next, c.own = lend.Alone, false; c.entry != nil {
				var over <-chan struct{}
				if c.next, over = c.entry.Next(now, c.Check, r.while, &r.decisions[c.index]); over != nil {
					other = over
				}
			}
			switch c.next {
			case lend.Refused:
				refused = i
			case lend.Reserved:
			default:
				asks++
			}
		}
		switch {
		case refused >= 0:
			r.asked = r.asked || round > 0
			l.cancel(r)
			for i := range r.together {
				if c := &r.together[i]; c.next != lend.Refused && c.next != lend.Reserved {
					r.decisions[c.index] = algorithms.Decision{Allowed: true}
				}
			}
			if r.again == 0 {
				l.Refused.Add(1) // which needed no call
			}
			return false, nil
		case r.spends && asks > 0:
			l.cancel(r)
			return false, nil
		case other != nil && round < maxRounds && left > 0:
			l.cancel(r)
			// An answer that is lost must not fail all requests that wait for it.
			if patience == nil {
				patience = time.NewTimer(left)
				defer patience.Stop()
			}
			select {
			case <-other:
			case <-patience.C:
				round = maxRounds - 1
			case <-ctx.Done():
				return false, ctx.Err()
			}
			continue
		}
		r.asked = r.asked || asks > 0 || round > 0
		if asks > 0 {
			if pass, err := l.askTogether(ctx, r); err != nil || !pass {
				l.cancel(r)
				return false, err
			}
			now = l.Loans.Now()
		}
		if r.reserves {
			return true, nil
		}
		return l.spend(ctx, r, now)
	}
}

// spend spends what was reserved. A loan may have ended meanwhile. Then Redis is asked for the cost, and if it
// refuses, all is given back. It reports whether all was spent.
func (l *Layer) spend(ctx context.Context, r *lentRequest, now lend.Moment) (spent bool, err error) {
	for i := range r.together {
		c, d := &r.together[i], &r.decisions[r.together[i].index]
		if c.next != lend.Reserved {
			continue
		}
		c.next = lend.Alone
		if at, spent := c.entry.Spend(now, c.Cost); spent {
			c.charged, d.At = at, at
			continue
		}
		c.askAlone()
		if err = l.askAlone(ctx, c.Check, d); err != nil || !d.Allowed {
			l.cancel(r)
			return false, err
		}
		c.charged = booked(d)
	}
	return true, nil
}

// cancel gives up what was reserved, and gives back what was charged.
func (l *Layer) cancel(r *lentRequest) {
	for i := range r.together {
		c, d := &r.together[i], &r.decisions[r.together[i].index]
		switch {
		case c.next == lend.Reserved:
			c.entry.Cancel(c.Cost)
		case c.charged > 0:
			l.Adjust(layer.Adjustment{Adjustment: store.Adjustment{Check: *c.Check, At: c.charged, Turn: c.charged, Delta: -c.Cost, Override: d.Override}})
			c.charged = 0
		default:
			continue
		}
		d.Remaining = min(d.Remaining+c.Cost, d.Quota)
	}
}

// askAlone decides a check by itself, without what this process holds of its key.
func (l *Layer) askAlone(ctx context.Context, c *store.Check, d *algorithms.Decision) error {
	a := link.Ask{Check: c, Ask: lend.Ask{Cost: c.Cost}, Peek: c.Peek}
	if err := l.Lender.AskTogether(ctx, []*link.Ask{&a}); err != nil {
		return err
	}
	*d = a.Decision
	if a.Overruled {
		if e := l.Loans.Known(c.Rule, c.Key); e != nil {
			e.OverruledAlone(l.Loans.Now())
		}
	}
	return nil
}

// askTogether asks for what is not reserved. What others can refuse still, or is in several slots of a Cluster,
// is reserved if it passes.
func (l *Layer) askTogether(ctx context.Context, r *lentRequest) (bool, error) {
	asked, asks := l.prepareAsks(r)
	answered, err := l.send(ctx, r, asks)
	pass := err == nil
	for i, a := range asks[:answered] {
		r.decisions[asked[i].index] = a.Decision
		pass, asked[i].own = pass && a.Allowed, a.Own
		if l.Refusals != nil && !a.Own {
			l.Refusals.Note(a.Check, a.Decision)
		}
	}
	now := l.Loans.Now()
	for i, c := range asked {
		if i >= answered {
			if c.ask.Number > 0 {
				c.entry.Fail(now, c.ask.Number, node.MayHaveRun(err))
			}
			continue
		}
		if !r.answer(c, asks[i], now, pass) {
			err = errLateLoan
		}
		if d := &r.decisions[c.index]; c.entry == nil {
			l.Loans.Lent(c.Rule, c.Key, asks[i].Lent > 0, now)
		} else if d.Allowed {
			d.Remaining = min(d.Quota, d.Remaining+c.entry.Spare(now))
		}
	}
	return pass && err == nil, err
}

// askAlone prepares an ask that borrows nothing.
func (c *lentCheck) askAlone() {
	if c.ask = (lend.Ask{Cost: c.Cost}); c.entry != nil {
		c.ask = c.entry.Alone(c.Cost)
	}
}

// borrows reports whether what a request asks for is only reserved, and charged later.
func (r *lentRequest) borrows() bool { return r.reserves || r.split }

// prepareAsks returns the checks that are not reserved, and what to ask for each.
func (l *Layer) prepareAsks(r *lentRequest) (asked []*lentCheck, asks []*link.Ask) {
	for i := range r.together {
		c := &r.together[i]
		if c.next == lend.Reserved {
			continue
		}
		c.askAlone()
		if c.entry != nil && (c.next == lend.Begin || r.again > 0 || r.borrows()) {
			if ask, ok := c.entry.Begin(l.Loans.Now(), c.Check, r.borrows()); ok {
				c.ask, c.next = ask, lend.Begin
			}
		}
		asked, asks = append(asked, c), append(asks, &link.Ask{Check: c.Check, Ask: c.ask, Final: r.again == maxAgain})
	}
	return asked, asks
}

// send sends what is asked: in one call, or in one for each if their keys are in several slots. It returns how
// many were answered.
func (l *Layer) send(ctx context.Context, r *lentRequest, asks []*link.Ask) (answered int, err error) {
	n := len(asks)
	if r.split {
		n = 1
	}
	for some := range slices.Chunk(asks, n) {
		if err := l.Lender.AskTogether(ctx, some); err != nil {
			return answered, err
		}
		answered += n
	}
	return answered, nil
}

// answer notes what the store has answered for a check: what it has lent, and what it has charged. It reports
// whether a loan that the request needs came in time.
func (r *lentRequest) answer(c *lentCheck, a *link.Ask, now lend.Moment, pass bool) (inTime bool) {
	charged := a.Allowed && !a.Unwritten && !a.Exempt && (pass || r.split)
	switch {
	case a.Overruled && c.ask.Number > 0 && !a.Unwritten:
		c.entry.End(now, c.ask.Number, a.LendAnswer.Answer, 0, 0)
		c.next = lend.Alone
		if charged {
			c.charged = a.Booked()
		}
	case c.ask.Number > 0 && a.Unwritten:
		c.entry.Fail(now, c.ask.Number, false)
	case c.ask.Number > 0:
		reserve := int64(0)
		if r.borrows() && pass {
			reserve = c.Cost
		}
		switch {
		case c.entry.End(now, c.ask.Number, a.LendAnswer.Answer, reserve, r.while):
			c.next = lend.Reserved
		case r.borrows() && a.Held == 0:
			c.next = lend.Alone
			if charged {
				c.charged = a.Booked()
			}
		case reserve > 0:
			return false
		case charged && !r.borrows():
			c.charged = a.Booked()
		}
	case charged:
		c.charged = a.Booked()
		if c.entry != nil {
			c.entry.ChargedAlone(a.At, a.Remaining)
		}
	case c.entry != nil && !a.Allowed:
		c.entry.RefusedAlone(a.Remaining)
	}
	if c.entry != nil && c.ask.Number == 0 && a.Overruled {
		c.entry.OverruledAlone(now)
	}
	return true
}

// booked returns when a decision was charged; 0 if it was not.
func booked(d *algorithms.Decision) int64 {
	if d.Exempt {
		return 0
	}
	return d.Booked()
}

// errLateLoan is the error of a request whose loan came too late to be used: this process had too much to do.
var errLateLoan = fmt.Errorf("a loan has come too late: %w", store.ErrBusy)
