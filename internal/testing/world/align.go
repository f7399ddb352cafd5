package world

import (
	"runtime"
	"sync/atomic"
)

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
