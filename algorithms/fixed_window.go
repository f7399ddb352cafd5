package algorithms

import (
	"errors"
	"time"
)

// FixedWindow counts events in windows. It is the cheapest algorithm and the coarsest:
// within one window's length, around the edge of two windows, twice the events can pass.
//
// Aligned to the clock, windows start at multiples of their length since 1970-01-01 00:00
// UTC, or with the days, weeks, months or years of a time zone. Aligned to the first request, a
// window starts with the first request after the previous window has ended.
//
// State: the start of the window and the count in it.
type FixedWindow struct{}

// Name implements [Algorithm].
func (FixedWindow) Name() string { return "fixed_window" }

// The second parameter says how windows start. For calendar windows it is an instant
// instead.
const (
	onTheClock = iota
	onFirstRequest
)

// Prepare implements [Algorithm]. The parameters are events, how windows start, and the
// window in microseconds. For calendar windows see PrepareAt.
func (a FixedWindow) Prepare(l Limit) (Params, error) {
	if err := l.validate(a.Name(), supports{window: true, calendar: true, align: true, hold: true}); err != nil {
		return Params{}, err
	}
	switch {
	case l.Calendar != 0 && l.Align == AlignFirstRequest:
		return Params{}, errors.New("window " + l.Calendar.String() + " is a calendar window: use align clock, or a duration such as 24h")
	case l.Calendar != 0:
		p, _, _ := a.PrepareAt(l, time.UnixMicro(0))
		return p, nil
	case l.Align == AlignFirstRequest:
		return Params{l.Events, onFirstRequest, l.Window.Microseconds()}, nil
	}
	return Params{l.Events, onTheClock, l.Window.Microseconds()}, nil
}

// PrepareAt returns the parameters of a calendar window for a time, and from when until when they hold. The limit must be one
// that Prepare accepts. The parameters are events, the end of the last of four
// windows, and the starts of all four: the previous window, the current one, and the two
// after it. With four windows the store's clock may be most of a day ahead or behind. If it
// was another day ahead before it went back, the counts of that time are still in one of
// the four.
func (FixedWindow) PrepareAt(l Limit, now time.Time) (p Params, from, until time.Time) {
	starts := l.Calendar.Bounds(now, l.Location, 3)
	p = Params{l.Events, starts[4].UnixMicro()}
	for i := range 4 {
		p[2+i] = starts[i].UnixMicro()
	}
	return p, starts[1], starts[2]
}

// Merges implements [Counter].
func (FixedWindow) Merges(Params) bool { return true }

// Take implements [Counter].
func (FixedWindow) Take(s State, p Params, now, cost int64) (State, Decision) {
	start, end, count := windowAt(s, p, now)
	allowed := cost <= max(0, p[0]-count)
	if allowed && cost > 0 {
		count += cost
		s = State{start, count}
	}
	return s, answer(allowed, p[0], count, cost, now, max(now, start), func(int64) int64 { return end })
}

// Adjust implements [Counter]. It gives nothing back of a charge in an earlier window.
func (FixedWindow) Adjust(s State, p Params, now, at, _, delta int64) State {
	start, _, count := windowAt(s, p, now)
	switch {
	case p[0] == 0:
		return s // nothing was charged
	case delta > 0:
		count = min(count+delta, maxExact/2)
	case at < start || count == 0 || delta == 0:
		return s
	default:
		count = max(0, count+delta)
	}
	return State{start, count}
}

// windowAt returns the window at now, and the count in it.
func windowAt(s State, p Params, now int64) (start, end, count int64) {
	seen, count := s[0], s[1]
	if count < 0 || count >= maxExact || seen < 0 || seen >= maxExact {
		seen, count = 0, 0
	}
	if seen > now && seen-now > lengthOf(p) {
		seen -= backToNow(seen-now, lengthOf(p))
	}
	start, end = windowOf(p, max(now, seen), seen, count)
	if seen < start {
		count = 0
	}
	return start, end, count
}

// lengthOf returns the length of a window. Of calendar windows it is about that, and the same whichever of them the
// parameters have.
func lengthOf(p Params) int64 {
	if p[1] == onTheClock || p[1] == onFirstRequest {
		return p[2]
	}
	for _, days := range [...]int64{1, 7, 30} {
		if p[3]-p[2] < 3*days*day {
			return days * day
		}
	}
	return 365 * day
}

// windowOf returns the window that contains t.
func windowOf(p Params, t, seen, count int64) (start, end int64) {
	switch p[1] {
	case onTheClock:
		start = t - t%p[2]
		return start, start + p[2]
	case onFirstRequest:
		start = seen
		if count == 0 || t >= seen+p[2] {
			start = t
		}
		return start, start + p[2]
	}
	start, end = p[2], p[3]
	for _, next := range [...]int64{p[4], p[5], p[1]} {
		if t >= end {
			start, end = end, next
		}
	}
	// The store's clock is further off than the four windows reach. Windows of about the
	// same length continue them.
	if length := end - start; t >= end {
		start = t - (t-end)%length
		end = start + length
	} else if t < start {
		end = start - (start-t-1)/length*length
		start = end - length
	}
	return start, end
}
