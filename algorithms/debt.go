package algorithms

// Adjust implements [Counter].
//
// A positive delta may leave the bucket in debt, so that later requests wait. The debt is
// at most what comes back in a day. If a limit with a larger burst has already taken more
// than that, nothing is added.
//
// A negative delta gives back the part of the charge that has not come back by itself. The
// state does not say which part that is. So the charge is assumed to have come back from
// the moment at which it was made; giving it back then never leaves more room than if the
// charge had not been made. If nothing was charged since, the assumption is not needed,
// and all of the charge is given back.
//
// With a hold, something may have been charged ahead since, and the pad of that may have counted on the charge: so the
// charge is assumed to come back a hold earlier. Units that were charged ahead are booked a hold later.
//
// In a queue only the last turn is given back, and only as a whole. A turn further ahead stays unused, because the requests
// behind it already know when to leave.
func (buckets) Adjust(s State, p Params, now, at, turn, delta int64) State {
	b, hold := open(s, p, now), p[5]
	switch {
	case b.burst == 0, delta == 0, delta < 0 && b.taken == 0:
		return s
	case delta > 0:
		room := b.burst + b.maxDebt() - (b.taken - b.back)
		if room <= 0 {
			return s
		}
		b.taken += min(delta, MaxEvents, room)
		return b.keep(b.t)
	case p[4] != 0:
		return b.giveTurnBack(s, turn, delta)
	}
	cost, elapsed := min(-delta, b.burst), int64(0)
	if hold == 0 {
		turn = at
	}
	if b.last > turn {
		elapsed = max(0, b.t+hold-at)
	}
	switch {
	case elapsed == 0:
	case b.lumps:
		n := windows(b.anchor-at, b.window)
		if n > cost/b.events {
			return s
		}
		cost -= n * b.events
		elapsed = 0
	case elapsed >= mulDivUp(cost, b.window, b.events):
		return s
	}
	b.taken -= cost
	b.anchor += elapsed
	return b.keepBehind(s)
}

// giveTurnBack gives a turn in a queue back.
func (b *bucket) giveTurnBack(s State, turn, delta int64) State {
	b.rewind(windows(-(b.taken + delta), b.events)) // because some of the charge has leaked out
	if b.after(b.taken+delta) != turn {
		return s
	}
	b.taken += delta
	return b.keepBehind(s)
}

// keepBehind returns the state to keep after something was given back: with an anchor that is not behind the last
// charge. It is the state as it was if there is no such anchor.
func (b *bucket) keepBehind(s State) State {
	b.rewind(windows(b.anchor-b.last, b.window))
	if b.anchor < 0 {
		return s
	}
	return b.keep(b.last)
}

// rewind moves the anchor n windows back, and adds the events of n windows to the tokens
// taken since the anchor.
func (b *bucket) rewind(n int64) {
	b.anchor -= n * b.window
	b.taken += n * b.events
}

// keep returns the state to keep, as of the last charge.
func (b *bucket) keep(last int64) State {
	b.drain(last)
	return State{b.anchor, b.taken, last}
}

// maxDebt returns how much comes back in a day.
func (b *bucket) maxDebt() int64 {
	const most = maxExact / 2
	if float64(b.events)*day >= float64(b.window)*most {
		return most
	}
	return mulDiv(day, b.events, b.window)
}

// windows returns how many windows begin within a time, the last one perhaps in part.
func windows(elapsed, window int64) int64 { return max(0, (elapsed+window-1)/window) }
