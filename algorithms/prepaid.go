package algorithms

// Units that are charged ahead count as made when their hold ends. Until then they may be spent, and afterwards not.
// So each is spent before it counts, and what is admitted never exceeds what one limiter would admit: also if a process
// dies that holds units, or if the answer about them is lost.
//
// Limit.Hold is how long units may be held. All who share a state must have the same one, because a refund depends on
// it: see bucket.adjust.

// Prepaid is a Counter that can charge ahead, as a Recorder can with RecordAhead.
type Prepaid interface {
	Counter

	// Ahead is of a state to which a cost was just charged at now. No other charge at this instant may be before it. It
	// charges up to want units more, and returns how many and for how long they may be spent, in microseconds from now.
	// An adjustment of them is of a charge that was made at now plus this time, with now as its turn.
	Ahead(s State, p Params, now, cost, want int64) (after State, units, lasts int64)
}

// part returns how many units of what is left are charged ahead: at most half, because others may need the rest.
func part(want, left int64) int64 { return max(0, min(want, left/2)) }

// ahead pads the bucket so that it would be full no earlier than the hold ends, without the cost and the units. So these
// begin to come back only then, as if they were taken at that time. The pad does not count on the cost, because a refund
// may give that back. Tokens that come back all at once need no pad: units last until then.
func (b *bucket) ahead(s State, hold, cost, want, now int64) (after State, units, lasts int64) {
	lasts, pad := hold, int64(0)
	if b.lumps {
		lasts = min(hold, b.anchor+b.window-now-1)
	} else {
		pad = max(0, mulDivUp(b.t+hold-b.anchor, b.events, b.window)-(b.taken-cost))
	}
	if units = part(want, b.remaining-pad); units == 0 {
		return s, 0, 0
	}
	return State{b.anchor, b.taken + units + pad, b.t}, units, lasts
}

// Ahead implements [Prepaid].
func (TokenBucket) Ahead(s State, p Params, now, cost, want int64) (after State, units, lasts int64) {
	b := open(s, p, now)
	return b.ahead(s, p[5], cost, want, now)
}

// Ahead implements [Prepaid]. A queue charges nothing ahead.
func (LeakyBucket) Ahead(s State, p Params, now, cost, want int64) (after State, units, lasts int64) {
	if p[4] != 0 {
		return s, 0, 0
	}
	b := open(s, p, now)
	return b.ahead(s, p[5], cost, want, now)
}

// Ahead implements [Prepaid]. The units may be spent until their window ends.
func (FixedWindow) Ahead(s State, p Params, now, _, want int64) (after State, units, lasts int64) {
	start, end, count := windowAt(s, p, now)
	if units = part(want, p[0]-count); units == 0 {
		return s, 0, 0
	}
	return State{start, count + units}, units, end - now - 1
}

// Ahead implements [Prepaid]. The units may be spent until the window on the clock ends.
func (SlidingWindowCounter) Ahead(s State, p Params, now, _, want int64) (after State, units, lasts int64) {
	window := p[1]
	t, start, current, previous := counts(s, window, now)
	units = part(want, p[0]-current-mulDivUp(previous, window-(t-start), window))
	if units == 0 {
		return s, 0, 0
	}
	return State{t, current + units, previous}, units, start + window - now - 1
}

// RecordAhead is Record, and charges ahead like [Prepaid]. The cost and the units are one charge, so the cost counts as
// made when the hold ends, too. Lasts is how far ahead of now that is, also if there are no units.
func (a SlidingWindowLog) RecordAhead(l *Log, p Params, now, cost, want int64) (units, lasts int64) {
	t, expired := a.expired(l, p, now)
	if units = part(want, p[0]-l.Events(expired, l.Len())-cost); units > 0 {
		t = max(t, now+a.back(l, p, now)+p[2])
	}
	if cost+units > 0 {
		l.Forget(expired)
		l.Append(t, cost+units)
	}
	return units, t - now
}
