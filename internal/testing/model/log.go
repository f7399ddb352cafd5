package model

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// event is a charge and its time.
type event struct{ at, cost int64 }

// latest is the time of the last event.
func latest(events []event) int64 {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].at
}

// log is all events that have not been forgotten. It forgets what has left the window
// when an event is added.
type log struct{ events []event }

func (g *log) known(now int64) memory {
	if latest(g.events) > now+day {
		return &log{}
	}
	return &log{slices.Clone(g.events)}
}

func (g *log) quota(l algorithms.Limit) int64 { return l.Events }

func (g *log) left(l algorithms.Limit, now int64) int64 {
	return max(0, l.Events-g.all(l, now))
}

// inside says that an event counts: its age is below the window.
func inside(l algorithms.Limit, e event, t int64) bool { return t-e.at < l.Window.Microseconds() }

func (g *log) fits(l algorithms.Limit, now, cost int64) bool { return cost <= g.left(l, now) }

func (g *log) charge(l algorithms.Limit, now, cost int64, _ string) {
	t := max(now, latest(g.events))
	g.events = slices.DeleteFunc(g.events, func(e event) bool { return !inside(l, e, t) })
	g.events = append(g.events, event{t, cost})
}

func (g *log) booked() int64 { return latest(g.events) }

// correct forgets what was charged then. Of what is charged more, and of all before it,
// it keeps the latest: twice as many as the limit has events, or as many as there were.
func (g *log) correct(l algorithms.Limit, now, at, delta int64, name string) {
	if delta > 0 {
		before := g.all(l, now)
		g.charge(l, now, min(delta, l.Events), name)
		g.drop(g.all(l, now)-max(2*l.Events, before), func(event) bool { return true })
	} else if delta < 0 {
		g.drop(-delta, func(e event) bool { return e.at == at })
	}
}

// all is how much counts at now.
func (g *log) all(l algorithms.Limit, now int64) (n int64) {
	t := max(now, latest(g.events))
	for _, e := range g.events {
		if inside(l, e, t) {
			n += e.cost
		}
	}
	return n
}

// drop forgets so much of some events.
func (g *log) drop(cost int64, of func(event) bool) {
	for i := range g.events {
		if e := &g.events[i]; of(*e) {
			gone := min(max(0, cost), e.cost)
			e.cost -= gone
			cost -= gone
		}
	}
	g.events = slices.DeleteFunc(g.events, func(e event) bool { return e.cost == 0 })
}
