package lending

import (
	"context"
	"slices"
	"time"
)

// maxAgain bounds how often a request is decided again: each time another one of its key was faster.
const maxAgain = 3

// decideTogether decides checks of zones that lend, and reports whether all pass. If others of the request can refuse it still,
// what passes is only reserved.
//
// What is lent counts as used for requests that ask for themselves, also if their own process has it. The store tells such a request
// that it is refused only because of that, and it is decided again. When its time is over, it only spends what is held. A ban counts
// what refuses it in the end.
func (l *Layer) decideTogether(ctx context.Context, r *lentRequest) (bool, error) {
	r.patience, r.again, r.spends = l.Timeout/2, 0, false // the other half is for an ask of its own
	pass, err := l.decideOnce(ctx, r)
	if err != nil {
		return false, err
	}
	for !pass && r.again < maxAgain && l.own(ctx, r) {
		refused := slices.Clone(r.decisions)
		r.patience = l.Timeout
		r.again++
		pass, err = l.decideOnce(ctx, r)
		if err != nil || r.spends && !pass {
			copy(r.decisions, refused)
			return false, nil
		}
	}
	return pass, nil
}

// own reports whether a request was refused only because of what its own process holds, and may pass now. It waits for an ask
// that is under way.
func (l *Layer) own(ctx context.Context, r *lentRequest) bool {
	for i := range r.together {
		if c, d := &r.together[i], &r.decisions[r.together[i].index]; !d.Allowed {
			if !c.own || d.Banned {
				return false
			}
			l.settle(ctx, r, c)
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
