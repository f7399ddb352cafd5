package algorithms

import "github.com/seed-161337e5/caddyratelimit/lua"

// LeakyBucket is a bucket of burst that leaks events per window, evenly. A request
// pours its cost in, and is refused if that would go over the brim.
//
// As a meter it is the token bucket seen from the other side. As a queue it delays: a
// request leaves when all that was poured in before it has leaked out, so requests
// leave evenly spaced, in the order in which they came.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986 (the meter); A. S. Tanenbaum, "Computer Networks", section on
// traffic shaping (the queue).
//
// State: as the token bucket's, with what was poured in for the tokens taken.
type LeakyBucket struct{}

// Name implements [Algorithm].
func (LeakyBucket) Name() string { return "leaky_bucket" }

// Script implements [Algorithm].
func (LeakyBucket) Script() string { return lua.Bucket }

// Prepare implements [Algorithm]. The parameters are the burst, the rate as a reduced
// fraction, 0, 1 for a queue, and the longest wait in it plus one, or 0.
func (a LeakyBucket) Prepare(l Limit) (Params, error) {
	if err := oneOf("mode", l.Mode, ModeMeter, ModeQueue); err != nil {
		return Params{}, err
	}
	p, err := prepareBucket(l, a.Name(), has{window: true, burst: true, mode: true})
	if l.Mode == ModeQueue {
		p[4] = 1
		if l.MaxWait > 0 {
			p[5] = l.MaxWait.Microseconds() + 1
		}
	}
	return p, err
}

// Take implements [Counter].
func (LeakyBucket) Take(s State, p Params, now, cost int64) (State, Decision) {
	b := open(s, p, now)
	delay := int64(0)
	if p[4] != 0 && b.taken > 0 {
		delay = b.after(b.taken) - now
	}
	over := p[5] > 0 && delay >= p[5] && cost > 0
	allowed := cost <= b.remaining && !over
	retry := int64(0)
	if !allowed {
		if cost > b.remaining {
			retry = b.retry(cost, now)
		}
		if over && retry != never {
			retry = max(retry, delay-p[5]+1)
		}
		delay = 0
	} else if cost > 0 {
		retry = b.t - now
	}
	if cost == 0 {
		delay = 0
	}
	s, next, reset := b.close(s, allowed, cost, now)
	return s, Micros(allowed, b.burst, b.remaining, retry, next, reset, delay)
}

// Adjust implements [Counter]. A turn in the queue is given back whole, and if it is the
// last one. One further ahead stays empty, for those behind it have been told when to
// leave.
func (LeakyBucket) Adjust(s State, p Params, now, at, turn, delta int64) State {
	b := open(s, p, now)
	if p[4] == 0 || delta >= 0 {
		return b.correct(s, at, delta)
	}
	if b.taken == 0 {
		return s
	}
	b.rewind(windows(-(b.taken + delta), b.events)) // some of it has leaked out
	if b.after(b.taken+delta) != turn {
		return s
	}
	b.taken += delta
	b.rewind(windows(b.anchor-b.last, b.window))
	return b.keep(b.last)
}
