package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// forgetting is the part of the difference by which a longer call moves the distance.
const forgetting = 32

// distance is how long a call takes that nothing delays: about the shortest time of late.
// One call that nothing delayed is enough to know it, and a busy machine or a long script
// changes it little. It follows a Redis that has moved away within some dozens of calls.
type distance struct{ nanos atomic.Int64 }

// is returns the distance, 0 if nothing has been measured.
func (d *distance) is() time.Duration { return time.Duration(d.nanos.Load()) }

// measure takes note of a call that was answered. Two calls that do so at once may lose
// one of their measurements.
func (d *distance) measure(took time.Duration) {
	known := d.is()
	if known > 0 && took > known {
		took = known + (took-known)/forgetting
	}
	d.nanos.Store(int64(max(took, 1)))
}

// ErrLate is the error of a request that was not sent, because it could not be answered any
// more within its time. It says nothing of Redis.
var ErrLate error = unsentError{fmt.Errorf("too little time was left to ask redis: %w", context.DeadlineExceeded)}

// lead is the time that a request must have left to be worth sending. A request that has
// just come has more in any case, or a distance once measured too long would stay.
func (b *batcher) lead() time.Duration { return min(b.trip.is(), b.timeout-b.timeout/8) }

// remote reports whether the making of a connection may take too much of a decision's time.
func (b *batcher) remote() bool { return 8*b.trip.is() > b.timeout }
