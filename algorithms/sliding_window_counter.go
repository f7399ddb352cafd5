package algorithms

// SlidingWindowCounter estimates the events of the sliding window from two counts: that of
// the current window on the clock, and that of the previous one. It assumes that the events
// of the previous window are spread evenly, and counts the part of them that the sliding
// window still covers.
//
// Source: Cloudflare, "How we built rate limiting capable of scaling to millions of
// domains", 2017.
//
// State: the time of the last charge, the count of its window, and that of the window
// before it.
type SlidingWindowCounter struct{}

// Name implements [Algorithm].
func (SlidingWindowCounter) Name() string { return "sliding_window_counter" }

// Prepare implements [Algorithm]. The parameters are events, and the window in microseconds.
func (a SlidingWindowCounter) Prepare(l Limit) (Params, error) {
	return Params{l.Events, l.Window.Microseconds()}, l.validate(a.Name(), supports{window: true, hold: true})
}

// Merges implements [Counter].
func (SlidingWindowCounter) Merges(Params) bool { return true }

// Take implements [Counter].
func (SlidingWindowCounter) Take(s State, p Params, now, cost int64) (State, Decision) {
	events, window := p[0], p[1]
	t, start, current, previous := counts(s, window, now)
	used := current + mulDivUp(previous, window-(t-start), window)
	allowed := cost <= max(0, events-used)
	if allowed && cost > 0 {
		current += cost
		used += cost
		s = State{t, current, previous}
	}
	return s, answer(allowed, events, used, cost, now, t, func(n int64) int64 {
		if n >= current {
			return start + window - mulDiv(n-current, window, previous)
		}
		return start + 2*window - mulDiv(n, window, current)
	})
}

// Adjust implements [Counter]. It gives nothing back of a charge that is two windows old or
// older.
func (SlidingWindowCounter) Adjust(s State, p Params, now, at, _, delta int64) State {
	window := p[1]
	t, start, current, previous := counts(s, window, now)
	switch {
	case p[0] == 0: // nothing was charged
	case delta > 0:
		return State{t, min(current+delta, maxExact/2), previous}
	case at >= start && current > 0:
		return State{t, max(0, current+delta), previous}
	case at >= start-window && at < start && previous > 0:
		return State{t, current, max(0, previous+delta)}
	}
	return s
}

// counts returns the counts of the current window and of the previous one. t is now, or the
// time of the last charge if that is later; start is when its window began.
func counts(s State, window, now int64) (t, start, current, previous int64) {
	last, current, previous := s[0], s[1], s[2]
	if current < 0 || current >= maxExact || previous < 0 || previous >= maxExact || last < 0 || last >= maxExact {
		last, current, previous = 0, 0, 0
	}
	if last-now > window {
		last -= backToNow(last-now, 2*window)
	}
	t = max(now, last)
	start = t - t%window
	if counted := last - last%window; counted == start-window {
		current, previous = 0, current
	} else if counted != start {
		current, previous = 0, 0
	}
	return t, start, current, previous
}
