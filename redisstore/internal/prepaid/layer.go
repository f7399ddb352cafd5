package prepaid

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer implements [layer.Layer].
type Layer struct {
	below   layer.Layer
	table   *Table
	epoch   time.Time
	gap     atomic.Int64 // see now
	timeout time.Duration
	done    chan struct{} // closed when all that was held is given back

	Spared  atomic.Uint64 // requests that needed no call because of what is held
	Refused atomic.Uint64 // those that are refused without one
}

// New puts the layer on another one. A call may take so long.
func New(below layer.Layer, timeout time.Duration) *Layer {
	return &Layer{below: below, table: NewTable(), epoch: time.Now(), timeout: timeout, done: make(chan struct{})}
}

// now returns the time on a clock that does not go back. If the wall clock has gained on the monotonic one, which stands
// still while a machine is suspended, it goes on by as much: then what is held ends sooner.
func (l *Layer) now() time.Duration {
	now := time.Now()
	mono := now.Sub(l.epoch)
	gap := int64(now.Round(0).Sub(l.epoch.Round(0)) - mono)
	for known := l.gap.Load(); gap > known && !l.gap.CompareAndSwap(known, gap); known = l.gap.Load() {
	}
	return mono + time.Duration(l.gap.Load())
}

// request is one of which some checks may be paid by what is held.
type request struct {
	checks    []store.Check
	decisions []algorithms.Decision
	asks      []Ask
	known     layer.Set // checks that are decided here
	left      int       // how many are not
	refused   bool      // a check is that others depend on
	sent      time.Duration
}

// Take implements [layer.Layer]. What is held is spent first. If the other checks of the request do not pass, it is put
// back.
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if !holds(checks) {
		return l.below.Take(ctx, checks, decisions)
	}
	var room [4]Ask
	r := request{checks: checks, decisions: decisions, asks: append(room[:0], make([]Ask, len(checks))...), left: len(checks)}
	if !l.spend(&r) {
		return l.below.Take(ctx, checks, decisions)
	}
	for i := range checks {
		if c := &checks[i]; r.refused && !c.Alone() && !r.known.Has(i) {
			l.table.Fail(c, r.asks[i], r.sent)
			decisions[i] = algorithms.Decision{Allowed: true} // nobody was asked
			r.know(i)
		}
	}
	var err error
	switch {
	case r.left > 0:
		err = l.ask(ctx, &r)
	case r.refused:
		l.Refused.Add(1)
	default:
		l.Spared.Add(1)
	}
	if err == nil && !r.refused && layer.Pass(checks, decisions) {
		return nil
	}
	for i := range checks {
		if c, d := &checks[i], &decisions[i]; r.known.Has(i) && !c.Alone() && d.Allowed && d.At > 0 {
			l.Adjust(store.GiveBack(c, d))
			d.Remaining = min(d.Quota, d.Remaining+c.Cost)
		}
	}
	return err
}

// holds reports whether units may be held for some of the checks.
func holds(checks []store.Check) bool {
	for i := range checks {
		if checks[i].Rule.Hold() > 0 {
			return true
		}
	}
	return false
}

func (r *request) know(i int) {
	r.known.Add(i)
	r.left--
}

// spend decides the checks that it can. It reports whether the request is more than one for the layer below.
func (l *Layer) spend(r *request) (more bool) {
	for i := range r.checks {
		c := &r.checks[i]
		if r.asks[i].Cost = c.Cost; c.Rule.Hold() == 0 {
			continue
		}
		if r.sent == 0 {
			r.sent = l.now()
		}
		if c.Peek {
			more = true
			continue
		}
		known, ask := l.table.Take(c, r.sent, &r.decisions[i])
		r.asks[i] = ask
		if more = more || ask.hold != nil; known {
			r.know(i)
			r.refused = r.refused || !r.decisions[i].Allowed && !c.Alone()
			if ask.Ahead > 0 {
				go l.askBeside(*c, ask)
			}
		}
	}
	return more
}

// ask has the layer below decide what is not known, in one call.
func (l *Layer) ask(ctx context.Context, r *request) error {
	rest := layer.Rest(r.checks, &r.known)
	for i, place := range rest.Places {
		rest.Checks[i].Cost, rest.Checks[i].Ahead = r.asks[place].Cost, r.asks[place].Ahead
	}
	err := l.below.Take(ctx, rest.Checks, rest.Decisions)
	rest.Into(r.decisions)
	now, pass := l.now(), layer.Pass(r.checks, r.decisions)
	for i := range r.checks {
		switch c, d := &r.checks[i], &r.decisions[i]; {
		case r.known.Has(i):
		case err != nil:
			l.table.Fail(c, r.asks[i], now)
		case c.Peek:
			l.addHeld(c, d)
		default:
			l.table.End(c, r.asks[i], d, pass || c.Alone(), r.sent, now)
			d.Units, d.Lasts = 0, 0
		}
	}
	return err
}

// addHeld adds what is held to a peek: another request of this process would have it.
func (l *Layer) addHeld(c *store.Check, d *algorithms.Decision) {
	if c.Rule.Hold() == 0 || d.Banned || d.Exempt || d.Override != "" {
		return
	}
	held, _ := l.table.Held(c.Rule, c.Key)
	if d.Remaining = min(d.Quota, d.Remaining+held); c.Cost <= d.Remaining {
		d.Allowed, d.RetryAfter = true, 0
	}
}

// askBeside asks for more of a key before what is held of it is spent. No request waits.
func (l *Layer) askBeside(c store.Check, a Ask) {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	c.Cost, c.Ahead = a.Cost, a.Ahead
	d, sent := make([]algorithms.Decision, 1), l.now()
	if err := l.below.Take(ctx, []store.Check{c}, d); err != nil {
		l.table.Fail(&c, a, l.now())
		return
	}
	l.table.End(&c, a, &d[0], true, sent, l.now())
}

// Adjust implements [layer.Layer].
func (l *Layer) Adjust(adjustments ...store.Adjustment) {
	rest := adjustments[:0:0]
	for _, a := range adjustments {
		if a.Rule.Hold() > 0 {
			if a.Delta = l.table.Adjust(&a, l.now()); a.Delta == 0 {
				if a.Done != nil {
					a.Done(true)
				}
				continue
			}
		}
		rest = append(rest, a)
	}
	l.below.Adjust(rest...)
}

// Forget implements [layer.Layer].
func (l *Layer) Forget(rule *store.Rule, key string) {
	l.table.Forget(rule.Zone(), key)
	l.below.Forget(rule, key)
}

// Tend gives back what was not spent in time, and everything once quit is closed. Then it returns.
func (l *Layer) Tend(quit <-chan struct{}) {
	defer close(l.done)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for all := false; !all; {
		select {
		case <-tick.C:
		case <-quit:
			all = true
		}
		if back := l.table.Sweep(l.now(), all); len(back) > 0 {
			l.below.Adjust(back...)
		}
	}
}

// Wait returns when all has been given back, once Tend has been asked to end.
func (l *Layer) Wait() { <-l.done }
