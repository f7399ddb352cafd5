// Package throttle limits log lines that clients or outages could otherwise cause without end.
package throttle

import (
	"sync/atomic"
	"time"
)

// Interval is the shortest time between two lines.
const Interval = time.Minute

// Throttle allows one log line per [Interval]. The zero Throttle is ready to use, from several
// goroutines at once.
type Throttle struct{ last atomic.Int64 } // nanoseconds of Unix time

// Allow reports whether a line may be written now. If the clock has been set back, it may.
func (t *Throttle) Allow() bool {
	now, last := time.Now().UnixNano(), t.last.Load()
	return (now < last || now-last >= int64(Interval)) && t.last.CompareAndSwap(last, now)
}
