package model

import (
	"math/big"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// window models fixed_window: the charges of one window, and when it started. Nothing else is
// remembered of time.
type window struct {
	start int64
	costs []int64
}

// asOf moves the start back. If it is in a window on the calendar then, it counts for that one.
func (w *window) asOf(l algorithms.Limit, now int64) memory {
	length := l.Window.Microseconds()
	if l.Calendar != 0 {
		days := map[algorithms.Calendar]int64{algorithms.Day: 1, algorithms.Week: 7, algorithms.Month: 30, algorithms.Year: 365}
		length = days[l.Calendar] * day
	}
	return &window{w.start - moved(w.start, now, length, length), slices.Clone(w.costs)}
}

// begin returns the start of the window at now.
func (w *window) begin(l algorithms.Limit, now int64) int64 {
	t := max(now, w.start)
	length := l.Window.Microseconds()
	switch {
	case l.Calendar != 0:
		start, _ := onCalendar(l, t)
		return start
	case l.Align != algorithms.AlignFirstRequest:
		return t / length * length
	case sum(w.costs) > 0 && t < w.start+length:
		return w.start
	}
	return t
}

// onCalendar returns the window on the calendar that contains t.
func onCalendar(l algorithms.Limit, t int64) (start, end int64) {
	bounds := l.Calendar.Bounds(time.UnixMicro(t), l.Location, 1)
	return bounds[1].UnixMicro(), bounds[2].UnixMicro()
}

func (w *window) left(l algorithms.Limit, now int64) int64 {
	if w.start < w.begin(l, now) {
		return l.Events
	}
	return max(0, l.Events-sum(w.costs))
}

func (w *window) fits(l algorithms.Limit, now, cost int64) bool { return cost <= w.left(l, now) }

func (w *window) charge(l algorithms.Limit, now, cost int64, _ string) {
	begin := w.begin(l, now)
	if w.start < begin {
		w.costs = nil
	}
	w.start, w.costs = begin, append(w.costs, cost)
}

func (w *window) booked() int64 { return w.start }

// ahead charges units in the window, which may be spent until it ends.
func (w *window) ahead(l algorithms.Limit, now, _, want int64) (units, lasts int64) {
	if units = half(w.left(l, now), want); units > 0 {
		w.charge(l, now, units, "")
	}
	begin := w.begin(l, now)
	end := begin + l.Window.Microseconds()
	if l.Calendar != 0 {
		_, end = onCalendar(l, begin)
	}
	return units, end - now - 1
}

// adjust charges more in the current window, or gives back what was charged in it. Charges of
// other windows no longer count.
func (w *window) adjust(l algorithms.Limit, now, at, _, delta int64, name string) {
	begin := w.begin(l, now)
	switch {
	case delta > 0:
		w.charge(l, now, delta, name)
	case w.start >= begin && at >= begin && sum(w.costs) > 0:
		w.charge(l, now, -min(-delta, sum(w.costs)), name)
	}
}

func sum(costs []int64) (all int64) {
	for _, c := range costs {
		all += c
	}
	return all
}

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
