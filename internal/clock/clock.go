// Package clock is the time that requests are decided by: the machine's, or that of a log.
package clock

import "time"

// Clock is a clock by which requests are decided, and wait: one with [Timers], or a [Timeline], which
// holds requests itself.
type Clock interface {
	// Now returns the time since a fixed moment. It never goes back.
	Now() time.Duration
}

// Timers is a clock with timers. Its methods may be called from many goroutines at once.
type Timers interface {
	Clock

	// AfterFunc calls f on a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) *time.Timer
}

// System is the machine's monotonic clock.
type System struct{}

// start is so long ago that the time is above 0 in tests whose time is made up, too: it begins in the year 2000.
var start = time.Now().Add(-50 * 365 * 24 * time.Hour)

// Now implements [Clock]. It takes less time than [time.Now].
func (System) Now() time.Duration { return time.Since(start) }

// AfterFunc implements [Timers].
func (System) AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(d, f) }
