package algorithms

func (TokenBucket) lossy() {}
func (LeakyBucket) lossy() {}

// correct changes what was charged at an instant.
//
// A charge more may leave a bucket in debt, for which later requests wait; at most for
// what comes back in a day. Where a limit with a larger burst has taken more than that,
// nothing is added.
//
// What is given back is the part of the charge that has not come back by itself. Nobody
// remembers which part that is, so each charge is taken to have come back from the
// moment when it was made: then giving it back never makes room that there would not
// be without the charge. If nothing was charged since, that cannot be, and all of it is
// given back.
func (b *bucket) correct(s State, at, delta int64) State {
	switch {
	case b.burst == 0 || delta == 0:
		return s
	case delta > 0:
		room := b.burst + b.mostDebt() - (b.taken - b.back)
		if room <= 0 {
			return s
		}
		b.taken += min(delta, MaxEvents, room)
		return b.keep(b.t)
	}
	cost, elapsed := min(-delta, b.burst), int64(0)
	if b.last > at {
		elapsed = b.t - at
	}
	switch {
	case b.taken == 0:
		return s
	case elapsed == 0:
	case b.lumps:
		if n := windows(b.anchor-at, b.window); n > 0 {
			if n > cost/b.events {
				return s
			}
			cost -= n * b.events
		}
		elapsed = 0
	case elapsed >= mulDivUp(cost, b.window, b.events):
		return s
	}
	b.taken -= cost
	b.anchor += elapsed
	b.rewind(windows(b.anchor-b.last, b.window))
	if b.anchor < 0 {
		return s
	}
	return b.keep(b.last)
}

// rewind has the anchor so many windows earlier, with as many more taken since.
func (b *bucket) rewind(n int64) {
	b.anchor -= n * b.window
	b.taken += n * b.events
}

// keep is the state to keep as of the last charge.
func (b *bucket) keep(last int64) State {
	b.drain(last)
	return State{b.anchor, b.taken, last}
}

// mostDebt is what comes back in a day.
func (b *bucket) mostDebt() int64 {
	const most = maxExact / 2
	if float64(b.events)*maxStepBack >= float64(b.window)*most {
		return most
	}
	return mulDiv(maxStepBack, b.events, b.window)
}

// windows is how many windows are begun in so long a time.
func windows(elapsed, window int64) int64 {
	if elapsed <= 0 {
		return 0
	}
	return (elapsed + window - 1) / window
}
