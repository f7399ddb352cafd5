// Package lending is the layer of zones that lend. Keys that come rarely are asked for as in zones that do not
// lend, because nothing is lent of most of them. What this process holds of other keys is spent without a call.
// The rest is asked for in one call, in which all that is decided together is charged or none. What this process
// holds is reserved meanwhile, and spent if all checks pass.
package lending

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer implements [layer.Layer].
type Layer struct {
	Config
	layer.Layer // below

	Loans   *loans.Table
	Slots   *loans.Slots
	Spared  atomic.Uint64 // requests that needed no call because of what is held
	Refused atomic.Uint64 // those that are refused without one
	done    chan struct{} // closed when all that is held has been given back
}

// Lender lends: the link.
type Lender interface {
	// AskTogether has asks about different keys decided together, for a request.
	AskTogether(ctx context.Context, asks []*link.Ask) error

	// AskEach has asks decided one after the other. No request waits for them.
	AskEach(ctx context.Context, asks []*link.Ask)
}

// Config is what the layer needs beside the one below it.
type Config struct {
	Lender    Lender
	PerCall   int // how many keys may share a call; 1: each needs its own
	Timeout   time.Duration
	Refusals  *refusals.Layer // remembers those of the lender too; nil: nothing does
	Processes func() int      // that use the store

	// Changes reads which keys have got other rules lately, as [protocol.Changes] has it. Changed notes that one has, for
	// all processes. If they are nil, there are no such rules.
	Changes func(ctx context.Context) (string, error)
	Changed func(ctx context.Context, rule *store.Rule, key string) error

	// Done is closed when the layer is to give back what is held, and to end.
	Done <-chan struct{}
}

// New puts lending on another layer.
func New(inner layer.Layer, c *Config) *Layer {
	return &Layer{Config: *c, Layer: inner, Loans: loans.New(), Slots: loans.NewSlots(), done: make(chan struct{})}
}

// Take implements [layer.Layer].
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	for i := range checks {
		if checks[i].Rule.Lend() > 0 {
			return l.decide(ctx, checks, decisions)
		}
	}
	return l.Layer.Take(ctx, checks, decisions)
}

// Forget implements [layer.Layer].
func (l *Layer) Forget(rule *store.Rule, key string) {
	if rule.Lend() > 0 {
		l.Loans.Forget(rule.Zone(), key)
		l.Layer.Adjust(layer.Of(l.Slots.Forget(rule.Zone(), key)...)...)
	}
	l.Layer.Forget(rule, key)
}

// Renewed tells that the link's renewal of a lease, sent at a time, was just answered.
func (l *Layer) Renewed(leaseID string, sent time.Time) {
	l.Slots.Renewed(leaseID, l.Loans.At(sent), l.Loans.Now())
}

// Count adds what is held to the counts of a store.
func (l *Layer) Count(all *store.Stats) {
	all.Lent, all.Loans = l.Loans.Held(l.Loans.Now())
	kept, keys := l.Slots.Kept()
	for zone, n := range kept {
		all.InUse[zone] -= n
		all.Lent[zone] += n
		all.Loans[zone] += keys[zone]
	}
	all.Spared = l.Spared.Load()
}

// Wait returns when all has been given back. Done must be closed.
func (l *Layer) Wait() { <-l.done }

// lentRequest is a request that meets zones which lend.
type lentRequest struct {
	checks    []store.Check
	decisions []algorithms.Decision

	unlent layer.Set   // checks that are asked for as in zones that do not lend
	others int         // how many these are
	alone  layer.Set   // checks that are decided by themselves, before the others, and are not asked for again
	slots  layer.Set   // checks that are decided with slots that are kept
	often  layer.Set   // checks of slots of keys that come often
	sent   lend.Moment // before anything was asked
	asked  bool        // the store, by this request or by one that it has waited for

	together []lentCheck // the other checks
	reserves bool        // what passes of these is only reserved until unlent ones are decided
	split    bool        // no single call can decide them
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

	charged int64 // the time at which Redis has charged the cost; 0: it has not
}

// decide decides checks of which at least one is of a zone that lends. As where nothing is lent, a request that
// gets no answer is refused if its key just was.
func (l *Layer) decide(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) (err error) {
	came, spared := l.Loans.Now(), false
	if len(checks) == 1 && checks[0].Rule.LendsParts() && !checks[0].Peek {
		if spared, err = l.decideOne(ctx, checks, decisions, came); spared {
			l.Spared.Add(1)
		}
	} else {
		err = l.decideSome(ctx, checks, decisions)
	}
	if err == nil && !spared {
		l.noteBans(checks, decisions)
	}
	if err != nil && l.Refusals != nil {
		ago := l.Loans.Now().Mono - came.Mono
		err = l.Refusals.Refuse(checks, decisions, new(layer.Set), l.Refusals.Now()-ago, err)
	}
	return err
}

// decideOne decides a check of a zone that lends, which is decided by itself, as in most requests. If the key comes
// rarely, the request goes the way of a zone that does not lend. If this process holds enough, it is spent. Only
// otherwise anything is put together for an ask. It reports whether no call was needed.
func (l *Layer) decideOne(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, now lend.Moment) (spared bool, err error) {
	c := &checks[0]
	e, lent := l.Loans.Find(c.Rule, c.Key, c.Cost, now)
	switch {
	case e != nil && e.SpendNow(now, c.Cost, &decisions[0]):
		return true, nil
	case e == nil && !lent:
		err := l.Layer.Take(ctx, checks, decisions)
		if err == nil {
			l.noteCharged(c, &decisions[0])
			return false, nil
		}
		if !errors.Is(err, protocol.ErrLent) {
			return false, err
		}
		e = l.Loans.FindLent(c.Rule, c.Key, c.Cost, l.Loans.Now())
	}
	r := lentRequest{checks: checks, decisions: decisions}
	r.together = append(r.room[:0], lentCheck{Check: c, entry: e})
	_, err = l.decideTogether(ctx, &r)
	return err == nil && !r.asked, err
}

// decideSome decides checks of several zones, or some that are decided by themselves.
func (l *Layer) decideSome(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	r, asked := lentRequest{checks: checks, decisions: decisions}, false
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
			spared, err = l.decideOne(ctx, checks[i:i+1], decisions[i:i+1], l.Loans.Now())
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
		if c := &checks[i]; err == nil && c.Peek && c.Rule.Lend() > 0 {
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
	if c.Rule.KeepsSlots() {
		d.Allowed = l.Slots.Keeps(c)
	} else if e := l.Loans.Known(c.Rule, c.Key); e != nil {
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
	r.unlent, r.slots, r.often = layer.Set{}, layer.Set{}, layer.Set{}
	r.others, r.reserves, r.while, r.sent = 0, false, l.Timeout, now
	r.together = r.room[:0]
	for i := range r.checks {
		c := &r.checks[i]
		var e *loans.Entry
		lent := false
		switch {
		case r.alone.Has(i):
			continue
		case c.Rule.Lend() == 0:
		case !c.Rule.LendsParts():
			if l.useSlot(r, i, now) {
				continue
			}
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
	r.split = l.PerCall == 1 && slices.ContainsFunc(r.together, func(c lentCheck) bool { return c.Key != r.together[0].Key })
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
		r.reserves = r.reserves && pass
	}
	if err == nil && r.others > 0 {
		err = l.decideUnlent(ctx, r)
	}
	l.noteSlots(r, err)
	if r.others == 0 && !r.asked && err == nil {
		l.Spared.Add(1)
	}
	return err
}

// decideUnlent decides the checks that are asked for as in zones that do not lend. If there are costs
// that are only reserved, they are spent if all checks pass.
func (l *Layer) decideUnlent(ctx context.Context, r *lentRequest) error {
	if r.others == len(r.checks) {
		err := l.Layer.Take(ctx, r.checks, r.decisions)
		if err == nil {
			l.noteUnlent(r)
		}
		return err
	}
	refused := slices.ContainsFunc(r.together, func(c lentCheck) bool { return !r.decisions[c.index].Allowed })
	var others layer.Some
	for i := range r.checks {
		switch c := &r.checks[i]; {
		case !r.unlent.Has(i):
		case refused && !c.Alone(): // it is not looked at
			r.decisions[i] = algorithms.Decision{Allowed: true}
		default:
			others.Add(r.checks, i)
		}
	}
	var err error
	if len(others.Checks) > 0 {
		err = l.Layer.Take(ctx, others.Checks, others.Decisions)
	}
	pass := err == nil && layer.Pass(others.Checks, others.Decisions)
	if err == nil || errors.Is(err, protocol.ErrLent) {
		others.Into(r.decisions)
	}
	if err == nil {
		l.noteUnlent(r)
	}
	switch {
	case !r.reserves:
	case !pass:
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

// noteUnlent notes what Redis has charged for checks that were asked for as in zones that do not lend.
func (l *Layer) noteUnlent(r *lentRequest) {
	for i := range r.checks {
		if c := &r.checks[i]; r.unlent.Has(i) && c.Rule.LendsParts() {
			l.noteCharged(c, &r.decisions[i])
		}
	}
}

// noteCharged tells the borrower of a key that Redis has charged it by itself.
func (l *Layer) noteCharged(c *store.Check, d *algorithms.Decision) {
	if e := l.Loans.Known(c.Rule, c.Key); e != nil {
		e.ChargedAlone(d.At, d.Remaining)
	}
}

// giveBackCharge gives back what a check has charged.
func (l *Layer) giveBackCharge(c *store.Check, d *algorithms.Decision) {
	if c.Alone() || c.Cost == 0 || d.Exempt {
		return
	}
	l.Adjust(layer.Adjustment{Adjustment: store.GiveBack(c, d)})
}
