package world

import (
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
)

// watch is the clock of an instance, by which requests wait in the limiter and its queues: it has a rate of its own. The
// stores take no clock, so their timers run by that of the world. No two timers of an instance go off at the same instant.
type watch struct {
	began time.Time
	rate  float64 // seconds in a second of the world
	set   atomic.Int64
}

// Now implements [clock.Clock].
func (c *watch) Now() time.Duration { return time.Duration(float64(time.Since(c.began)) * c.rate) }

// AfterFunc implements [clock.Clock].
func (c *watch) AfterFunc(d time.Duration, f func()) clock.Timer {
	return time.AfterFunc(time.Duration(float64(d)/c.rate)+time.Duration(c.set.Add(1)), f)
}
