package world

import (
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
)

// watch is the clock of an instance, by which requests wait in the limiter and its queues: it has a rate of its own. The
// stores take no clock, so their timers run by that of the world.
type watch struct {
	net   *network
	began time.Time
	rate  float64 // seconds in a second of the world

	mu    sync.Mutex
	taken map[time.Duration]bool // when a timer goes off: no two of an instance do at one instant, and none when the network does
}

// newWatch returns a watch that has begun.
func newWatch(n *network, rate float64) *watch {
	return &watch{net: n, began: time.Now(), rate: rate, taken: make(map[time.Duration]bool)}
}

// Now implements [clock.Clock].
func (c *watch) Now() time.Duration { return time.Duration(float64(time.Since(c.began)) * c.rate) }

// AfterFunc implements [clock.Timers].
func (c *watch) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.net.now()
	at := even(now+time.Duration(float64(d)/c.rate)) + 1
	for c.taken[at] {
		at += 2
	}
	c.taken[at] = true
	return time.AfterFunc(at-now, f)
}
