package model

import (
	"math"
	"math/big"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// window models fixed_window: the charges of one window, which are booked when it began. Nothing else is
// remembered of time.
type window struct{ charges }

// asOf moves the start back. If it is in a window on the calendar then, it counts for that one.
func (w *window) asOf(l algorithms.Limit, now int64) memory {
	length := l.Window.Microseconds()
	if l.Calendar != 0 {
		days := map[algorithms.Calendar]int64{algorithms.Day: 1, algorithms.Week: 7, algorithms.Month: 30, algorithms.Year: 365}
		length = days[l.Calendar] * day
	}
	return &window{w.earlier(moved(w.booked(), now, length, length))}
}

// begin returns the start of the window at now.
func (w *window) begin(l algorithms.Limit, now int64) int64 {
	start := w.booked()
	t := max(now, start)
	length := l.Window.Microseconds()
	switch {
	case l.Calendar != 0:
		begin, _ := onCalendar(l, t)
		return begin
	case l.Align != algorithms.AlignFirstRequest:
		return t / length * length
	case w.used(start) > 0 && t < start+length:
		return start
	}
	return t
}

// used returns how much was charged in the window that began at an instant.
func (w *window) used(begin int64) int64 {
	if w.booked() < begin {
		return 0
	}
	return w.sum(math.MinInt64)
}

// onCalendar returns the window on the calendar that contains t.
func onCalendar(l algorithms.Limit, t int64) (start, end int64) {
	bounds := l.Calendar.Bounds(time.UnixMicro(t), l.Location, 1)
	return bounds[1].UnixMicro(), bounds[2].UnixMicro()
}

func (w *window) left(l algorithms.Limit, now int64) int64 {
	return max(0, l.Events-w.used(w.begin(l, now)))
}

func (w *window) charge(l algorithms.Limit, now, cost int64, _ string) {
	begin := w.begin(l, now)
	if w.booked() < begin {
		w.charges = nil
	}
	w.charges = append(w.charges, charge{at: begin, cost: cost})
}

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
	if delta > 0 {
		w.charge(l, now, delta, name)
	} else if used := w.used(begin); at >= begin && used > 0 {
		w.charge(l, now, -min(-delta, used), name)
	}
}

// counter models sliding_window_counter. It estimates the sliding window from the windows on
// the clock: all charges of the current one, and those of the previous one as if they were
// spread evenly over it, rounded up.
type counter struct{ charges }

// asOf moves all times back by whole windows, so that each charge stays as far into its window as it was. The windows
// count for two lengths: that of the last charge, and the one before it.
func (c *counter) asOf(l algorithms.Limit, now int64) memory {
	length := l.Window.Microseconds()
	return &counter{c.earlier(moved(c.booked(), now, length, 2*length))}
}

func (c *counter) left(l algorithms.Limit, now int64) int64 {
	t, length := max(now, c.booked()), l.Window.Microseconds()
	start := t / length * length
	current := c.sum(start)
	previous := c.sum(start-length) - current
	overlap := big.NewRat(start+length-t, length)
	used := current + up(overlap.Mul(overlap, big.NewRat(previous, 1)))
	return max(0, l.Events-used)
}

func (c *counter) charge(_ algorithms.Limit, now, cost int64, _ string) {
	c.charges = append(c.charges, charge{at: max(now, c.booked()), cost: cost})
}

// ahead charges units in the current window, which may be spent until it ends on the clock.
func (c *counter) ahead(l algorithms.Limit, now, _, want int64) (units, lasts int64) {
	t, length := max(now, c.booked()), l.Window.Microseconds()
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
	c.giveBack(-delta, func(t int64) bool { return t/length == at/length })
}
