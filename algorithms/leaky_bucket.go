package algorithms

// LeakyBucket is a bucket that holds burst events and leaks evenly, at events per window. A
// request pours its cost in, and is refused if the bucket would overflow.
//
// As a meter it is the mirror image of the token bucket. As a queue it delays requests: a
// request leaves when everything that was poured in before it has leaked out. So requests
// leave evenly spaced, in the order in which they came.
//
// Source: J. Turner, "New directions in communications", IEEE Communications
// Magazine 24(10), 1986 (the meter); A. S. Tanenbaum, "Computer Networks", section on
// traffic shaping (the queue).
//
// State: that of the token bucket, with the events poured in as the tokens taken.
type LeakyBucket struct{}

// Name implements [Algorithm].
func (LeakyBucket) Name() string { return "leaky_bucket" }

// Prepare implements [Algorithm]. The parameters are the burst, the rate as a reduced
// fraction of events and microseconds, 0, 1 for a queue, and the queue's longest wait in
// microseconds plus one, or 0 if the wait has no bound. Of a meter the last one is the hold.
func (a LeakyBucket) Prepare(l Limit) (Params, error) {
	if err := oneOf("mode", l.Mode, ModeMeter, ModeQueue); err != nil {
		return Params{}, err
	}
	p, err := prepareBucket(l, a.Name(), supports{window: true, burst: true, mode: true, hold: true})
	if l.Mode == ModeQueue {
		if l.Hold != 0 {
			return Params{}, errHeldQueue
		}
		p[4], p[5] = 1, 0
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

// Adjust implements [Counter]. In a queue only the last turn is given back, and only as a
// whole. A turn further ahead stays unused, because the requests behind it already know when
// to leave.
func (LeakyBucket) Adjust(s State, p Params, now, at, turn, delta int64) State {
	b := open(s, p, now)
	if p[4] == 0 || delta >= 0 {
		return b.adjust(s, at, turn, p[5], delta)
	}
	if b.taken == 0 {
		return s
	}
	b.rewind(windows(-(b.taken + delta), b.events)) // because some of the charge has leaked out
	if b.after(b.taken+delta) != turn {
		return s
	}
	b.taken += delta
	b.rewind(windows(b.anchor-b.last, b.window))
	return b.keep(b.last)
}
