package algorithms

import (
	"cmp"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Family implements [Algorithm]. It is the window, because older events are forgotten.
func (SlidingWindowLog) Family(l Limit) string { return duration.Format(l.Window) }

// Family implements [Algorithm]. It is the window, because the state has counts for it.
func (SlidingWindowCounter) Family(l Limit) string { return duration.Format(l.Window) }

// Family implements [Algorithm]. It is the window, and where windows start.
func (FixedWindow) Family(l Limit) string {
	switch {
	case l.Calendar != 0:
		return l.Calendar.String() + "-" + cmp.Or(l.Location, time.UTC).String()
	case l.Align == AlignFirstRequest:
		return duration.Format(l.Window) + "-" + AlignFirstRequest
	}
	return duration.Format(l.Window)
}

// Family implements [Algorithm]. All limits are one family, because each lease has an end of
// its own.
func (Concurrency) Family(Limit) string { return "" }
