package algorithms

import (
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
		place := "UTC"
		if l.Location != nil {
			place = l.Location.String()
		}
		return l.Calendar.String() + "-" + place
	case l.Align == AlignFirstRequest:
		return span(l.Window) + "-" + AlignFirstRequest
	}
	return span(l.Window)
}

// Family implements [Algorithm]. It is the rate at which tokens come back, and the kind of
// refill.
func (TokenBucket) Family(l Limit) string {
	if l.Refill == RefillInterval {
		return rate(l.Events, l.Window) + "-" + RefillInterval
	}
	return reducedRate(l)
}

// Family implements [Algorithm]. It is the rate at which the bucket leaks, and whether it is
// a queue.
func (LeakyBucket) Family(l Limit) string {
	if l.Mode == ModeQueue {
		return reducedRate(l) + "-" + ModeQueue
	}
	return reducedRate(l)
}

// Family implements [Algorithm]. All limits are one family, because each lease has an end of
// its own.
func (Concurrency) Family(Limit) string { return "" }

// reducedRate returns the rate of a limit as a reduced fraction: 10 events per second are
// one per 100 milliseconds.
func reducedRate(l Limit) string {
	window := l.Window.Microseconds()
	if l.Events <= 0 || window <= 0 {
		return rate(l.Events, l.Window)
	}
	g := gcd(l.Events, window)
	return rate(l.Events/g, l.Window/time.Duration(g))
}

func rate(events int64, window time.Duration) string {
	return strconv.FormatInt(events, 10) + "per" + span(window)
}

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
