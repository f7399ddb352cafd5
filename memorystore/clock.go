package memorystore

import "time"

// clock counts microseconds since 1970, and never goes back: it is the wall clock at the
// start plus the monotonic time since. So setting the wall clock while Caddy runs does not
// change any limit.
type clock struct {
	start time.Time
	base  int64
}

func newClock() clock {
	start := time.Now()
	return clock{start: start, base: start.UnixMicro()}
}

func (c clock) now() int64 { return c.base + time.Since(c.start).Microseconds() }
