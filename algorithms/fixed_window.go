package algorithms

import "github.com/seed-161337e5/caddyratelimit/lua"

// FixedWindow counts events in windows that start at multiples of their length since
// 1970-01-01 00:00 UTC. It is the cheapest and the coarsest: around the edge of two
// windows up to twice the events can pass.
//
// State: the start of the window and the count in it.
type FixedWindow struct{}

// Name implements [Algorithm].
func (FixedWindow) Name() string { return "fixed_window" }

// Script implements [Algorithm].
func (FixedWindow) Script() string { return lua.FixedWindow }

// Prepare implements [Algorithm]. The parameters are events and window.
func (a FixedWindow) Prepare(l Limit) (Params, error) {
	if err := l.withoutBurst(a.Name()); err != nil {
		return Params{}, err
	}
	return Params{l.Events, l.Window.Microseconds()}, nil
}

// Take implements [Counter].
func (FixedWindow) Take(s State, p Params, now, cost int64) (State, Decision) {
	events, window := p[0], p[1]
	seen, count := s[0], s[1]
	if count < 0 || count >= maxExact || seen < 0 || seen > now+maxStepBack {
		seen, count = 0, 0
	}
	t := max(now, seen)
	start := t - t%window
	if seen < start {
		count = 0
	}

	remaining := max(0, events-count)
	allowed := cost <= remaining
	retry := int64(0)
	switch {
	case allowed && cost > 0:
		count += cost
		remaining -= cost
		s = State{start, count}
	case allowed:
	case cost > events:
		retry = never
	default:
		retry = start + window - now
	}

	reset := int64(0)
	if remaining < events {
		reset = start + window - now
	}
	return s, Micros(allowed, events, remaining, retry, reset, reset, 0)
}
