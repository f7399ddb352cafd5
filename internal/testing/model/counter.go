package model

import (
	"math/big"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// counter models sliding_window_counter. It estimates the sliding window from the windows on
// the clock: all charges of the current one, and those of the previous one as if they were
// spread evenly over it, rounded up.
type counter struct{ events []event }

// asOf moves the time of the last charge back. The windows are those on the clock, and what they have counted
// stays: that of the last charge, and the one before it.
func (c *counter) asOf(l algorithms.Limit, now int64) memory {
	last, length := latest(c.events), l.Window.Microseconds()
	back := moved(last, now, length, 2*length)
	if back == 0 {
		return &counter{slices.Clone(c.events)}
	}
	// Periods are whole windows, so that each charge stays as far into its window as it was.
	m := &counter{slices.Clone(c.events)}
	for i := range m.events {
		m.events[i].at -= back
	}
	return m
}

func (c *counter) quota(l algorithms.Limit) int64 { return l.Events }

func (c *counter) left(l algorithms.Limit, now int64) int64 {
	t, length := max(now, latest(c.events)), l.Window.Microseconds()
	start := t / length * length
	var current, previous int64
	for _, e := range c.events {
		switch {
		case e.at >= start:
			current += e.cost
		case e.at >= start-length:
			previous += e.cost
		}
	}
	overlap := big.NewRat(start+length-t, length)
	used := current + up(overlap.Mul(overlap, big.NewRat(previous, 1)))
	return max(0, l.Events-used)
}

func (c *counter) fits(l algorithms.Limit, now, cost int64) bool { return cost <= c.left(l, now) }

func (c *counter) charge(_ algorithms.Limit, now, cost int64, _ string) {
	c.events = append(c.events, event{max(now, latest(c.events)), cost})
}

func (c *counter) booked() int64 { return latest(c.events) }

// ahead charges units in the current window, which may be spent until it ends on the clock.
func (c *counter) ahead(l algorithms.Limit, now, _, want int64) (units, lasts int64) {
	t, length := max(now, latest(c.events)), l.Window.Microseconds()
	if units = half(c.left(l, now), want); units > 0 {
		c.charge(l, now, units, "")
	}
	return units, t/length*length + length - now - 1
}

// adjust charges more now, or gives back what the window of the charge still has.
func (c *counter) adjust(l algorithms.Limit, now, at, _, delta int64, name string) {
	if delta > 0 {
		c.charge(l, now, delta, name)
		return
	}
	length := l.Window.Microseconds()
	rest := -delta
	for i := range c.events {
		if e := &c.events[i]; e.at/length == at/length {
			gone := min(rest, e.cost)
			e.cost -= gone
			rest -= gone
		}
	}
}
