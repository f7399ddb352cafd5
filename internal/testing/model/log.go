package model

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// event is a charge and its time.
type event struct{ at, cost int64 }

// latest returns the time of the last event, or 0.
func latest(events []event) int64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].at
}

// log models sliding_window_log. Events that have left the window are dropped when the next
// one is added.
type log struct {
	events []event
	back   int64 // how far now is moved: see clock
}

func (g *log) asOf(l algorithms.Limit, now int64) memory {
	window := l.Window.Microseconds()
	if latest(g.events) > now+century {
		return &log{}
	}
	return &log{slices.Clone(g.events), moved(latest(g.events), now, window, window)}
}

// end returns now in the time of the log, where the window ends. A log that is further ahead than its window keeps its
// times until it has expired, and now is moved instead.
func (g *log) end(now int64) int64 { return now + g.back }

func (g *log) left(l algorithms.Limit, now int64) int64 {
	return max(0, l.Events-g.live(l, now))
}

// inside reports whether an event counts at t, because it is younger than the window.
func inside(l algorithms.Limit, e event, t int64) bool { return t-e.at < l.Window.Microseconds() }

func (g *log) fits(l algorithms.Limit, now, cost int64) bool { return cost <= g.left(l, now) }

func (g *log) charge(l algorithms.Limit, now, cost int64, _ string) {
	t := g.end(now)
	booked := max(t, latest(g.events))
	g.events = slices.DeleteFunc(g.events, func(e event) bool { return !inside(l, e, t) })
	g.events = append(g.events, event{booked, cost})
}

// ahead charges units when the hold ends, and the cost with them.
func (g *log) ahead(l algorithms.Limit, now, cost, want int64) (units, lasts int64) {
	if units = half(g.left(l, now), want); units == 0 {
		return 0, 0
	}
	if cost > 0 {
		g.events = g.events[:len(g.events)-1]
	}
	g.charge(l, now, cost+units, "")
	last := &g.events[len(g.events)-1]
	last.at = max(last.at, g.end(now)+l.Hold.Microseconds())
	return units, last.at - now
}

func (g *log) booked() int64 { return latest(g.events) }

// adjust gives back what was charged at an instant, or charges more. Then it keeps only the
// latest events: twice as many as the limit has, or as many as there were before.
func (g *log) adjust(l algorithms.Limit, now, at, _, delta int64, name string) {
	if delta > 0 {
		before := g.live(l, now)
		g.charge(l, now, min(delta, l.Events), name)
		g.drop(g.live(l, now)-max(2*l.Events, before), func(event) bool { return true })
	} else if delta < 0 {
		g.drop(-delta, func(e event) bool { return e.at == at })
	}
}

// live returns how much counts at now.
func (g *log) live(l algorithms.Limit, now int64) (n int64) {
	t := g.end(now)
	for _, e := range g.events {
		if inside(l, e, t) {
			n += e.cost
		}
	}
	return n
}

// drop takes a cost off the events that match.
func (g *log) drop(cost int64, match func(event) bool) {
	for i := range g.events {
		if e := &g.events[i]; match(*e) {
			gone := min(max(0, cost), e.cost)
			e.cost -= gone
			cost -= gone
		}
	}
	g.events = slices.DeleteFunc(g.events, func(e event) bool { return e.cost == 0 })
}
