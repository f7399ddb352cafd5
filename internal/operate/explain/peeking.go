package explain

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peeking answers what another store would answer, and changes nothing there. It knows what it would have charged, and answers as if
// it had. After a sleep on its clock, it answers as if nothing but the time had passed: no slot has come back. It is for one
// goroutine, and for one request.
type peeking struct {
	ref *pool.Ref // for a limiter
	err error     // of the last Take

	ctx     context.Context
	of      *pool.Ref
	clock   *clock.Timeline
	asked   map[stateKey]int64 // the costs of the last questions
	charged map[stateKey]int64
}

// stateKey is a state of a key.
type stateKey struct{ id, key string }

// newPeeking returns a peeking of the store that a reference is to.
func newPeeking(ctx context.Context, of *pool.Ref, c *clock.Timeline) *peeking {
	p := &peeking{ctx: ctx, of: of, clock: c, asked: make(map[stateKey]int64), charged: make(map[stateKey]int64)}
	p.ref = of.InPlace(p)
	return p
}

// costAsked returns the cost for which the other store was last asked of the state of a check: with what was charged before.
func (p *peeking) costAsked(c *store.Check) int64 { return p.asked[stateKey{c.Rule.ID(), c.Key}] }

// Take implements [store.Store].
func (p *peeking) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if p.err = p.look(checks, decisions); p.err != nil {
		return p.err
	}
	pass := true
	for i := range checks {
		pass = pass && (decisions[i].Allowed || checks[i].Alone())
	}
	for i := range checks {
		if c, d := &checks[i], &decisions[i]; d.Allowed && !d.Exempt && (pass || c.Independent) {
			p.charged[stateKey{c.Rule.ID(), c.Key}] += c.Cost
			d.Remaining = max(0, d.Remaining-c.Cost)
		}
	}
	return nil
}

// look asks the other store for each check with its cost, and what was charged before. A check that costs nothing passes, whatever
// was charged.
func (p *peeking) look(checks []store.Check, decisions []algorithms.Decision) error {
	s, err := p.of.Begin()
	if err != nil {
		return err
	}
	defer s.End()
	asks := slices.Clone(checks)
	for i := range asks {
		c, of := &asks[i], stateKey{checks[i].Rule.ID(), checks[i].Key}
		if c.Cost > 0 {
			c.Cost += p.charged[of]
		}
		p.asked[of], c.Peek, c.Independent = c.Cost, true, false
	}
	if err := s.Store.Store.Take(p.ctx, asks, decisions); err != nil {
		return err
	}
	for i := range checks {
		p.sleep(&checks[i], &decisions[i])
		if err := p.ban(s.Store.Store, &checks[i], &decisions[i]); err != nil {
			return err
		}
	}
	return nil
}

// ban makes a refusal a ban, if one would begin with it.
func (p *peeking) ban(in store.Store, c *store.Check, d *algorithms.Decision) error {
	counter, counts := in.(store.Overrider)
	if !counts || d.Allowed || d.Banned || c.KeyRules == nil || c.KeyRules.Ban == nil {
		return nil
	}
	r, err := counter.Refusals(p.ctx, c.Rule, c.KeyRules.Ban, c.Key)
	if err == nil && r.Count+1 >= c.KeyRules.Ban.After {
		*d = d.Ban(r.Next.Microseconds())
		d.BanBegins = true
	}
	return err
}

// sleep makes a decision that of a moment later, by what the clock has gone on. It must have begun at 0. What only does not fit
// beside what was charged before will fit some time later.
func (p *peeking) sleep(c *store.Check, d *algorithms.Decision) {
	slept := p.clock.Now()
	_, slots := c.Rule.Algorithm().(algorithms.Leaser)
	if limit := c.Rule.Limit(); d.RetryAfter == algorithms.Never && !d.Banned && c.Cost <= d.Quota && c.Cost < p.costAsked(c) {
		d.RetryAfter = max(d.ResetAfter, limit.Window, limit.Lease)
	}
	switch {
	case d.Allowed:
		d.Delay = max(0, d.Delay-slept)
	case d.RetryAfter == algorithms.Never, slots && !d.Banned:
	case d.RetryAfter <= slept:
		d.Allowed, d.Banned, d.RetryAfter = true, false, 0
	default:
		d.RetryAfter, d.NextAfter, d.ResetAfter = d.RetryAfter-slept, max(0, d.NextAfter-slept), max(0, d.ResetAfter-slept)
	}
}

// Adjust implements [store.Store].
func (p *peeking) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		a := &adjustments[i]
		p.charged[stateKey{a.Rule.ID(), a.Key}] += a.Delta
	}
}

// Instances implements [store.Fleet].
func (p *peeking) Instances() int { return p.of.Instances(0) }

// Reset implements [store.Store]. It does nothing.
func (*peeking) Reset(context.Context, *store.Rule, string) error { return nil }

// Close implements [store.Store].
func (*peeking) Close() error { return nil }

// Networks returns those of the other store.
func (p *peeking) Networks(rule *store.Rule) *store.Networks { return p.of.Networks(rule) }
