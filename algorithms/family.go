package algorithms

import (
	"cmp"
	"strconv"
	"time"
)

// Family implements [Algorithm]. It is the window, because older events are forgotten.
func (SlidingWindowLog) Family(l Limit) string { return span(l.Window) }

// Family implements [Algorithm]. It is the window, because the state has counts for it.
func (SlidingWindowCounter) Family(l Limit) string { return span(l.Window) }

// Family implements [Algorithm]. It is the window, and where windows start.
func (FixedWindow) Family(l Limit) string {
	switch {
	case l.Calendar != 0:
		return l.Calendar.String() + "-" + cmp.Or(l.Location, time.UTC).String()
	case l.Align == AlignFirstRequest:
		return span(l.Window) + "-" + AlignFirstRequest
	}
	return span(l.Window)
}

// Family implements [Algorithm]. All limits are one family, because each lease has an end of
// its own.
func (Concurrency) Family(Limit) string { return "" }

// span formats a duration as one number in the largest unit of which it is a multiple.
func span(d time.Duration) string {
	for _, unit := range [...]struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if d >= unit.length && d%unit.length == 0 {
			return strconv.FormatInt(int64(d/unit.length), 10) + unit.name
		}
	}
	return strconv.FormatInt(d.Microseconds(), 10) + "us"
}
