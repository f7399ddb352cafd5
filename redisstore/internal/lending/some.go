package lending

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// takeSome decides checks of several zones, or some that are decided by themselves.
func (l *Layer) takeSome(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, came lend.Moment) error {
	r, asked := lentRequest{came: came, checks: checks, decisions: decisions}, false
	for i := range checks {
		c := &checks[i]
		if !c.Rule.LendsParts() || !c.Alone() {
			continue
		}
		r.alone.Add(i)
		spared, err := false, error(nil)
		if c.Peek {
			err = l.askAlone(ctx, c, &decisions[i])
		} else {
			spared, err = l.takeOne(ctx, checks[i:i+1], decisions[i:i+1], came, l.Loans.Now())
		}
		if err != nil {
			return err
		}
		asked = asked || !spared
	}
	r.asked = asked
	err := l.decideRest(ctx, &r, false)
	if errors.Is(err, protocol.ErrLent) {
		r.keepDecided()
		err = l.decideRest(ctx, &r, true)
	}
	for i := range checks {
		if c := &checks[i]; err == nil && c.Peek && c.Rule.LendsParts() {
			l.addHeld(c, &decisions[i])
		}
	}
	return err
}

// keepDecided keeps what a call has decided that found parts of a key lent: it decides, and charges, the checks that
// are decided by themselves.
func (r *lentRequest) keepDecided() {
	r.asked = true
	for i := range r.checks {
		if r.unlent.Has(i) && r.checks[i].Alone() && r.decisions[i].At > 0 {
			r.alone.Add(i)
		}
	}
}

// addHeld adds what this process holds of a key, which is used for everybody else, to the answer to a peek.
func (l *Layer) addHeld(c *store.Check, d *algorithms.Decision) {
	if d.Allowed || d.Banned {
		return
	}
	if e := l.Loans.Known(c.Rule, c.Key); e != nil {
		held := e.Spare(l.Loans.Now())
		d.Remaining = min(d.Quota, d.Remaining+held)
		d.Allowed = c.Cost <= d.Remaining
	}
	if d.Allowed {
		d.RetryAfter = 0
	}
}

// sortLent finds out which checks are asked for as in zones that do not lend. If it is known that
// parts of the others' keys are lent, none of a zone that lends are.
func (l *Layer) sortLent(r *lentRequest, known bool) {
	now := l.Loans.Now()
	r.unlent, r.others, r.reserves, r.while = layer.Set{}, 0, false, l.Timeout
	r.together = r.room[:0]
	for i := range r.checks {
		c := &r.checks[i]
		var e *loans.Entry
		lent := false
		switch {
		case r.alone.Has(i):
			continue
		case !c.Rule.LendsParts():
		case known:
			e, lent = l.Loans.FindLent(c.Rule, c.Key, c.Cost, now), true
		default:
			e, lent = l.Loans.Find(c.Rule, c.Key, c.Cost, now)
		}
		if e == nil && !lent {
			r.unlent.Add(i)
			r.others++
			if r.reserves = r.reserves || !c.Alone(); c.Alone() {
				r.decisions[i] = algorithms.Decision{} // see keepDecided
			}
			continue
		}
		r.while = min(r.while, c.Rule.Lend())
		r.together = append(r.together, lentCheck{Check: c, index: i, entry: e})
	}
	r.split = l.PerCall == 1 && slices.ContainsFunc(r.together, func(c lentCheck) bool { return r.moves || c.Key != r.together[0].Key })
	if r.reserves = r.reserves && len(r.together) > 0; !r.reserves && len(r.together) < 2 {
		r.while = 0 // what is reserved is spent at once
	}
	if r.reserves || r.split {
		for i := range r.together {
			if c := &r.together[i]; c.entry == nil {
				c.entry = l.Loans.Make(c.Rule, c.Key, c.Cost, now)
			}
		}
	}
}

// decideRest decides the checks that are not decided by themselves. See sortLent for known.
func (l *Layer) decideRest(ctx context.Context, r *lentRequest, known bool) (err error) {
	l.sortLent(r, known)
	if len(r.together) > 0 {
		var pass bool
		pass, err = l.decideTogether(ctx, r)
		if err != nil && !r.moves && len(r.together) > 1 && link.Migrating(err) { // so nothing was charged
			r.moves = true
			return l.decideRest(ctx, r, known)
		}
		r.reserves = r.reserves && pass
	}
	if err == nil && r.others > 0 {
		err = l.decideUnlent(ctx, r)
	}
	if r.others == 0 && !r.asked && err == nil {
		l.Spared.Add(1)
	}
	return err
}

// decideUnlent decides the checks that are asked for as in zones that do not lend. If there are costs
// that are only reserved, they are spent if all checks pass.
func (l *Layer) decideUnlent(ctx context.Context, r *lentRequest) error {
	others := l.unlent(r)
	var err error
	if len(others.Checks) > 0 {
		err = l.below.Take(ctx, others.Checks, others.Decisions)
	}
	if err == nil || errors.Is(err, protocol.ErrLent) {
		others.Into(r.decisions)
	}
	for i := range others.Checks {
		if c := &others.Checks[i]; err == nil && c.Rule.LendsParts() {
			l.noteCharged(c, &others.Decisions[i])
		}
	}
	switch {
	case !r.reserves:
	case err != nil || !layer.Pass(others.Checks, others.Decisions):
		l.cancel(r)
	default:
		if spent, failed := l.spend(ctx, r, l.Loans.Now()); !spent {
			for i := range others.Checks {
				l.giveBackCharge(&others.Checks[i], &others.Decisions[i])
			}
			return failed
		}
	}
	return err
}

// unlent returns the checks that are asked for as in zones that do not lend. Those that are decided together are not
// looked at if what is held has refused the request.
func (l *Layer) unlent(r *lentRequest) (others layer.Some) {
	if r.others == len(r.checks) {
		return layer.All(r.checks, r.decisions)
	}
	refused := slices.ContainsFunc(r.together, func(c lentCheck) bool { return !r.decisions[c.index].Allowed })
	for i := range r.checks {
		switch c := &r.checks[i]; {
		case !r.unlent.Has(i):
		case refused && !c.Alone():
			r.decisions[i] = algorithms.Decision{Allowed: true}
		default:
			others.Add(r.checks, i)
		}
	}
	return others
}
