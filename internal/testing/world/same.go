package world

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// role is a number for what the goroutine does that calls: the functions of this module on its stack. Goroutines that
// do something at the same instant are told apart by it.
func role() uint64 {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(1, stack[:])])
	h := dice(fnvOffset)
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); strings.Contains(f.Function, "redisstore") {
			h = h.text(f.Function)
		}
	}
	return uint64(h)
}

// lookEvery is how often Go's scheduler looks first at the goroutines that have given way, instead of those that were
// readied: once in so many times that a goroutine goes on.
const lookEvery = 61

// align has the scheduler be as far from its next look whenever a world begins. The worlds before it would decide otherwise when
// a goroutine goes on that gives way.
func align() {
	const others = lookEvery + 3
	var ran atomic.Int32
	for range others {
		go ran.Add(1)
	}
	runtime.Gosched() // until a look, because others are there
	since := others - ran.Load()
	if since == others {
		since-- // the last of them is still to go on, in the time slice of this one
	}
	for ; ran.Load() < others; since++ {
		runtime.Gosched()
	}
	for ; since%lookEvery != 0; since++ {
		runtime.Gosched()
	}
}

// watch is the clock of an instance, by which requests wait in the limiter and its queues: it has a rate of its own. The
// stores take no clock, so their timers run by that of the world.
type watch struct {
	net   *network
	began time.Time
	rate  float64 // seconds in a second of the world

	mu    sync.Mutex
	taken map[time.Duration]bool // when a timer goes off: no two of an instance do at one instant, and none when the network does
}

// Now implements [clock.Clock].
func (c *watch) Now() time.Duration { return time.Duration(float64(time.Since(c.began)) * c.rate) }

// AfterFunc implements [clock.Timers].
func (c *watch) AfterFunc(d time.Duration, f func()) *time.Timer {
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
