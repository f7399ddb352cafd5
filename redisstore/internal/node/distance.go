package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// distance is how long a call takes that nothing delays: about the shortest time of late.
// One call that nothing delayed is enough to know it, and a busy machine or a long script
// changes it little. It follows a Redis that has moved away within some dozens of calls.
type distance struct {
	nanos atomic.Int64

	// usual is how long calls have taken of late, and least how long the shortest of very many
	// has. If Redis is busy for long, all calls of some time are long, but not all of these.
	usual, least atomic.Int64
}

const (
	// forgetting is the part of the difference by which a longer call moves the distance.
	forgetting = 32

	// smoothing is the part of the difference by which a call moves the usual time.
	smoothing = 8

	// forgettingLeast is the part of itself by which a call moves the least time.
	forgettingLeast = 4096

	// beside is the distance below which the way to Redis and back is work, too: that of the
	// operating systems, on both sides.
	beside = 250 * time.Microsecond
)

// is returns the distance, 0 if nothing has been measured.
func (d *distance) is() time.Duration { return time.Duration(d.nanos.Load()) }

// measure takes note of a call that was answered. Two calls that do so at once may lose
// one of their measurements.
func (d *distance) measure(took time.Duration) {
	if usual, least := d.usual.Load(), d.least.Load(); least > 0 {
		d.usual.Store(usual + (int64(took)-usual)/smoothing)
		d.least.Store(min(int64(took), least+least/forgettingLeast))
	} else {
		d.usual.Store(int64(took))
		d.least.Store(max(int64(took), 1))
	}
	known := d.is()
	if known > 0 && took > known {
		took = known + (took-known)/forgetting
	}
	d.nanos.Store(int64(max(took, 1)))
}

// costly reports whether it is the work that takes time, and not the way: calls take twice as long
// as they need, or Redis is beside this process. Then fewer calls are better than early ones.
func (d *distance) costly() bool {
	least := d.least.Load()
	return least < int64(beside) || d.usual.Load() > 2*least
}

// ErrLate is the error of a request that was not sent, because it could not be answered any
// more within its time. It says nothing of Redis.
var ErrLate error = unsentError{fmt.Errorf("too little time was left to ask redis: %w", context.DeadlineExceeded)}

// lead is the time that a request must have left to be worth sending. A request that has
// just come has more in any case, or a distance once measured too long would stay.
func (b *batcher) lead() time.Duration { return min(b.trip.is(), b.timeout-b.timeout/8) }

// far reports whether calls are spread over the round trip. There all calls would be made
// before the first returned, and a request that came then would wait for most of a round
// trip. Where Redis is near, the calls themselves say when the next ones are due.
func (b *batcher) far() bool { return b.trip.is() > maxCalls*maxLinger }

// remote reports whether the making of a connection may take too much of a decision's time.
func (b *batcher) remote() bool { return 8*b.trip.is() > b.timeout }

// spread is the least time from the last call to the next one if Redis is far: so that the
// calls that may still be made last until the first of those under way is back.
func (b *batcher) spread() time.Duration {
	oldest := b.begun[(b.begins-b.calls+maxCalls)%maxCalls]
	return max(maxLinger, (oldest+b.trip.is()-b.sent)/time.Duration(max(b.most()-b.calls, 0)+1))
}
