package lending

import (
	"context"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// maxAgain bounds how often a request is decided again: each time another one of its key was faster.
const maxAgain = 3

// decideTogether decides checks of zones that lend, and reports whether all pass. If others of the request can refuse it still,
// what passes is only reserved.
//
// What is lent counts as used for requests that ask for themselves, also if their own process has it. So one of them may be refused
// because of what the same call has lent, or one before it. Such a request is decided again. When its time is over, it only
// spends what is held. A ban counts it once.
func (l *Layer) decideTogether(ctx context.Context, r *lentRequest) (bool, error) {
	r.patience, r.again, r.spends = l.Timeout/2, false, false // the other half is for an ask of its own
	pass, err := l.decideOnce(ctx, r)
	if err != nil {
		return false, err
	}
	for n := 0; n < maxAgain && !pass && l.changed(ctx, r); n++ {
		refused := slices.Clone(r.decisions)
		r.patience, r.again = l.Timeout, true
		r.spends = r.spends || l.left(r) <= 0
		pass, err = l.decideOnce(ctx, r)
		if err != nil || r.spends && !pass {
			copy(r.decisions, refused)
			return false, nil
		}
	}
	for i := range r.together {
		if c := &r.together[i]; pass && r.again && l.Refusals != nil {
			l.Refusals.Delete(c.Rule, c.Key)
		}
	}
	return pass, nil
}

// changed reports whether a request may pass that was refused by itself: what its process has of the keys may have changed since, or is
// what the request lacks.
func (l *Layer) changed(ctx context.Context, r *lentRequest) bool {
	for i := range r.together {
		c, d := &r.together[i], &r.decisions[r.together[i].index]
		if d.Allowed {
			continue
		}
		if c.entry == nil || c.next == lend.Refused || c.ask.Number > 0 || d.Banned || d.Override != "" || c.Cost > d.Quota {
			return false
		}
		l.settle(ctx, r, c)
		if c.entry.Ended() == c.ended && !c.entry.Hides(l.Loans.Now(), c.Cost) {
			return false
		}
	}
	return true
}

// left returns how long a request may still take.
func (l *Layer) left(r *lentRequest) time.Duration {
	return l.Timeout - (l.Loans.Now().Mono - r.came.Mono)
}

// settle waits for the ask of a key that is under way, unless enough is held, as long as a request may take.
func (l *Layer) settle(ctx context.Context, r *lentRequest, c *lentCheck) {
	over := c.entry.UnderWay()
	if over == nil || c.Cost <= c.entry.Spare(l.Loans.Now()) {
		return
	}
	late := time.NewTimer(l.left(r))
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	case <-ctx.Done():
	}
}
