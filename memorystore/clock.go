package memorystore

import "time"

// clock tells microseconds since 1970 that never go back: the machine's monotonic
// time since the clock was made, set out from the wall clock then. A wall clock that
// is set while Caddy runs moves no limit.
type clock struct {
	start time.Time
	base  int64
}

func newClock() clock {
	start := time.Now()
	return clock{start: start, base: start.UnixMicro()}
}

func (c clock) now() int64 { return c.base + time.Since(c.start).Microseconds() }
