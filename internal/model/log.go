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
	t, used := max(now, latest(g.events)), int64(0)
	for _, e := range g.events {
		if inside(l, e, t) {
			used += e.cost
		}
	}
	return max(0, l.Events-used)
}

// inside says that an event counts: its age is below the window.
func inside(l algorithms.Limit, e event, t int64) bool { return t-e.at < l.Window.Microseconds() }

func (g *log) fits(l algorithms.Limit, now, cost int64) bool { return cost <= g.left(l, now) }

func (g *log) charge(l algorithms.Limit, now, cost int64, _ string) {
	t := max(now, latest(g.events))
	g.events = slices.DeleteFunc(g.events, func(e event) bool { return !inside(l, e, t) })
	g.events = append(g.events, event{t, cost})
}

func (g *log) giveBack(algorithms.Limit, string) {}
