package admin

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// peeking answers what another store would answer, and changes nothing there. It knows what it would have charged
// and which refusals it would have counted, and answers as if it had. After a sleep on its clock, it answers as if
// nothing but the time had passed: no slot has come back. It is for one goroutine, and for as long as
// nothing else is to have changed, because it asks the other store only once for the same.
type peeking struct {
	ref *pool.Ref // for a limiter
	err error     // of the last Take

	ctx      context.Context
	of       *pool.Ref
	clock    clock.Sleeper
	looked   map[question]algorithms.Decision
	asked    map[stateKey]int64 // the costs of the last questions
	charged  map[stateKey]int64
	refusals map[keyOf]*keyRefusals
}

// stateKey is a state of a key, and keyOf the key of a zone, which has one ban.
type (
	stateKey struct{ id, key string }
	keyOf    struct{ zone, key string }
	question struct {
		stateKey
		cost int64
	}
)

// keyRefusals are those of a key, with the ones that are counted here alone.
type keyRefusals struct {
	store.Refusals
	banned bool // a ban has begun here
}

// newPeeking returns a peeking of the store that a reference is to.
func newPeeking(ctx context.Context, of *pool.Ref, c clock.Sleeper) *peeking {
	p := &peeking{
		ctx: ctx, of: of, clock: c, looked: make(map[question]algorithms.Decision), asked: make(map[stateKey]int64), charged: make(map[stateKey]int64), refusals: make(map[keyOf]*keyRefusals),
	}
	p.ref = of.InPlace(p, c)
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
		d := &decisions[i]
		p.sleep(&checks[i], d)
		if p.err = p.countRefusal(&checks[i], d); p.err != nil {
			return p.err
		}
		pass = pass && (d.Allowed || checks[i].Alone())
	}
	for i := range checks {
		if c, d := &checks[i], &decisions[i]; d.Allowed && !d.Exempt && (pass || c.Independent) {
			p.charged[stateKey{c.Rule.ID(), c.Key}] += c.Cost
			d.Remaining = max(0, d.Remaining-c.Cost)
		}
	}
	return nil
}

// look asks the other store what was not asked before.
func (p *peeking) look(checks []store.Check, decisions []algorithms.Decision) error {
	var asks []store.Check
	for i := range checks {
		q := p.question(&checks[i])
		p.asked[q.stateKey] = q.cost
		if _, known := p.looked[q]; !known {
			ask := checks[i]
			ask.Cost, ask.Peek, ask.Independent = q.cost, true, false
			asks = append(asks, ask)
		}
	}
	answers := make([]algorithms.Decision, len(asks))
	if len(asks) > 0 {
		s, err := p.of.Begin()
		if err != nil {
			return err
		}
		defer s.End()
		if err := s.Store.Store.Take(p.ctx, asks, answers); err != nil {
			return err
		}
	}
	for i := range asks {
		p.looked[question{stateKey{asks[i].Rule.ID(), asks[i].Key}, asks[i].Cost}] = answers[i]
	}
	for i := range checks {
		decisions[i] = p.looked[p.question(&checks[i])]
	}
	return nil
}

// question returns what the other store is asked for a check: its cost, and what was charged before. A check that costs
// nothing passes, whatever was charged.
func (p *peeking) question(c *store.Check) question {
	q := question{stateKey{c.Rule.ID(), c.Key}, c.Cost}
	if c.Cost > 0 {
		q.cost += p.charged[q.stateKey]
	}
	return q
}

// sleep makes a decision that of a moment later, by what the clock has gone on. It must have begun at 0.
func (p *peeking) sleep(c *store.Check, d *algorithms.Decision) {
	slept := p.clock.Now()
	_, slots := c.Rule.Algorithm().(algorithms.Leaser)
	if limit := c.Rule.Limit(); d.RetryAfter == algorithms.Never && !d.Banned && c.Cost <= d.Quota && c.Cost < p.costAsked(c) {
		d.RetryAfter = max(d.ResetAfter, limit.Window, limit.Lease) // it does not fit beside what was charged before
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

// countRefusal counts a refusal, and bans the key if a ban begins with it.
func (p *peeking) countRefusal(c *store.Check, d *algorithms.Decision) error {
	if c.KeyRules == nil || c.KeyRules.Ban == nil || d.Banned || d.Exempt {
		return nil
	}
	at := keyOf{c.Rule.Zone(), c.Key}
	counted := p.refusals[at]
	if counted == nil {
		if d.Allowed {
			return nil
		}
		before, err := p.countedBefore(c)
		if err != nil {
			return err
		}
		counted = &keyRefusals{Refusals: before}
		p.refusals[at] = counted
	}
	if !d.Allowed && !counted.banned {
		counted.Count++
		counted.banned = counted.Count >= c.KeyRules.Ban.After
		d.BanBegins = counted.banned
	}
	if counted.banned {
		*d = d.Ban(counted.Next.Microseconds())
	}
	return nil
}

// countedBefore asks the other store how many refusals count towards the next ban of a key.
func (p *peeking) countedBefore(c *store.Check) (counted store.Refusals, err error) {
	s, err := p.of.Begin()
	if err != nil {
		return counted, err
	}
	defer s.End()
	if counter, ok := s.Store.Store.(store.Overrider); ok {
		counted, err = counter.Refusals(p.ctx, c.Rule, c.KeyRules.Ban, c.Key)
	}
	return counted, err
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
