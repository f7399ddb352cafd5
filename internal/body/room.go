package body

import (
	"context"
	"sync/atomic"
)

// MaxHeld is how many bytes the bodies of all requests may hold at once. The first 4 KiB of each do not count,
// so that requests with small bodies always have room.
const MaxHeld = 256 << 20

// held is how many bytes the bodies of all requests hold.
var held atomic.Int64

// room is what a body holds of MaxHeld.
type room struct {
	taken atomic.Int64
	waits bool // it is given back when the request is over
}

// take makes the room this large until the body is read or its request is over. It reports whether there is
// so much.
func (r *room) take(ctx context.Context, size int) bool {
	more := int64(size) - r.taken.Load()
	if held.Add(more) > MaxHeld {
		held.Add(-more)
		return false
	}
	r.taken.Add(more)
	if !r.waits {
		r.waits = true
		context.AfterFunc(ctx, r.giveBack)
	}
	if ctx.Err() != nil { // then it may have been given back before this
		r.giveBack()
	}
	return true
}

// giveBack gives back all of the room. It may be called several times and at once.
func (r *room) giveBack() { held.Add(-r.taken.Swap(0)) }
