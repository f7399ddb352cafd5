package model

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// log models sliding_window_log. Charges that have left the window are dropped when the next
// one is added.
type log struct {
	charges
	back int64 // how far now is moved: see begin
}

func (g *log) asOf(l algorithms.Limit, now int64) memory {
	window := l.Window.Microseconds()
	if g.booked() > now+century {
		return &log{}
	}
	return &log{g.earlier(0), moved(g.booked(), now, window, window)}
}

// begin returns when the window began that ends now. A log that is further ahead than its window
// keeps its times until it has expired, and now is moved instead.
func (g *log) begin(l algorithms.Limit, now int64) int64 {
	return now + g.back - l.Window.Microseconds() + 1
}

// live returns how much counts at now.
func (g *log) live(l algorithms.Limit, now int64) int64 { return g.sum(g.begin(l, now)) }

func (g *log) left(l algorithms.Limit, now int64) int64 { return max(0, l.Events-g.live(l, now)) }

func (g *log) charge(l algorithms.Limit, now, cost int64, _ string) {
	booked, begin := max(now+g.back, g.booked()), g.begin(l, now)
	g.charges = slices.DeleteFunc(g.charges, func(c charge) bool { return c.at < begin })
	g.charges = append(g.charges, charge{at: booked, cost: cost})
}

// ahead charges units when the hold ends, and the cost with them.
func (g *log) ahead(l algorithms.Limit, now, cost, want int64) (units, lasts int64) {
	if units = half(g.left(l, now), want); units == 0 {
		return 0, 0
	}
	if cost > 0 {
		g.charges = g.charges[:len(g.charges)-1]
	}
	g.charge(l, now, cost+units, "")
	last := &g.charges[len(g.charges)-1]
	last.at = max(last.at, now+g.back+l.Hold.Microseconds())
	return units, last.at - now
}

// adjust gives back what was charged at an instant, or charges more. Then it keeps only the
// latest charges: twice as many as the limit has, or as many as there were before.
func (g *log) adjust(l algorithms.Limit, now, at, _, delta int64, name string) {
	if delta > 0 {
		before := g.live(l, now)
		g.charge(l, now, min(delta, l.Events), name)
		g.giveBack(max(0, g.live(l, now)-max(2*l.Events, before)), func(int64) bool { return true })
	} else {
		g.giveBack(-delta, func(t int64) bool { return t == at })
	}
	g.charges = slices.DeleteFunc(g.charges, func(c charge) bool { return c.cost == 0 })
}
