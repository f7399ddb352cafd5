// Package throttle keeps lines out of the log that clients or outages could cause at will.
package throttle

import (
	"sync/atomic"
	"time"
)

// Interval is how often a line is written at most.
const Interval = time.Minute

// Throttle lets something be said at most once in an [Interval]. The zero Throttle is ready.
type Throttle struct{ last atomic.Int64 } // nanoseconds of Unix time

// Allow reports whether it may be said now. A clock that has gone back does not make it wait.
func (t *Throttle) Allow() bool {
	now, last := time.Now().UnixNano(), t.last.Load()
	return (now < last || now-last >= int64(Interval)) && t.last.CompareAndSwap(last, now)
}
