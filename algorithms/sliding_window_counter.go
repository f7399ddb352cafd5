package algorithms

import "github.com/seed-161337e5/caddyratelimit/lua"

// SlidingWindowCounter estimates the events of the last window from two counts: those
// of the current window on the clock, and those of the one before, taken to be spread
// evenly, in proportion to how much of it the last window still covers.
//
// Source: Cloudflare, "How we built rate limiting capable of scaling to millions of
// domains", 2017.
//
// State: the time of the last charge, the count of its window, and that of the one
// before.
type SlidingWindowCounter struct{}

// Name implements [Algorithm].
func (SlidingWindowCounter) Name() string { return "sliding_window_counter" }

// Script implements [Algorithm].
func (SlidingWindowCounter) Script() string { return lua.SlidingWindowCounter }

// Prepare implements [Algorithm]. The parameters are events and window.
func (a SlidingWindowCounter) Prepare(l Limit) (Params, error) {
	if err := l.validate(a.Name(), has{window: true}); err != nil {
		return Params{}, err
	}
	return Params{l.Events, l.Window.Microseconds()}, nil
}

// Take implements [Counter].
func (SlidingWindowCounter) Take(s State, p Params, now, cost int64) (State, Decision) {
	events, window := p[0], p[1]
	t, start, current, previous := counts(s, window, now)
	used := current + mulDivUp(previous, window-(t-start), window)
	remaining := max(0, events-used)
	allowed := cost <= remaining
	retry := int64(0)
	switch {
	case allowed && cost > 0:
		current += cost
		used += cost
		remaining -= cost
		s = State{t, current, previous}
		retry = t - now
	case allowed:
	case cost > events:
		retry = never
	default:
		retry = untilUsed(events-cost, start, window, current, previous) - now
	}

	next, reset := int64(0), int64(0)
	if remaining < events {
		next = untilUsed(min(used, events)-1, start, window, current, previous) - now
		reset = untilUsed(0, start, window, current, previous) - now
	}
	return s, Micros(allowed, events, remaining, retry, next, reset, 0)
}

// Adjust implements [Counter]. What was charged two windows ago or before is left alone.
func (SlidingWindowCounter) Adjust(s State, p Params, now, at, _, delta int64) State {
	window := p[1]
	t, start, current, previous := counts(s, window, now)
	switch {
	case p[0] == 0: // it has charged nothing
	case delta > 0:
		return State{t, min(current+delta, maxExact/2), previous}
	case at >= start && current > 0:
		return State{t, max(0, current+delta), previous}
	case at >= start-window && at < start && previous > 0:
		return State{t, current, max(0, previous+delta)}
	}
	return s
}

// counts are those of the window at now and of the one before. T is the time that counts,
// and start is when its window began.
func counts(s State, window, now int64) (t, start, current, previous int64) {
	last, current, previous := s[0], s[1], s[2]
	if current < 0 || current >= maxExact || previous < 0 || previous >= maxExact || last < 0 || last > now+maxStepBack {
		last, current, previous = 0, 0, 0
	}
	t = max(now, last)
	start = t - t%window
	switch counted := last - last%window; {
	case counted == start:
	case counted == start-window:
		current, previous = 0, current
	default:
		current, previous = 0, 0
	}
	return t, start, current, previous
}

// untilUsed is the instant at which no more than target counts as used, which is less
// than now.
func untilUsed(target, start, window, current, previous int64) int64 {
	if target >= current {
		return start + window - mulDiv(target-current, window, previous)
	}
	return start + 2*window - mulDiv(target, window, current)
}
