package memorystore

import "time"

// newClock returns a clock in microseconds since 1970 that never goes back: it is the wall clock at the
// start plus the monotonic time since. So setting the wall clock while Caddy runs does not
// change any limit.
func newClock() func() int64 {
	start := time.Now()
	base := start.UnixMicro()
	return func() int64 { return base + time.Since(start).Microseconds() }
}
