package body

import (
	"context"
	"sync/atomic"
)

// MaxInMemory is how many bytes the bodies of all requests may have at once. The first 4 KiB of each do not count,
// so that requests with small bodies always have room.
const MaxInMemory = 256 << 20

// inMemory is how many bytes the bodies of all requests have.
var inMemory atomic.Int64

// room is what a body has of MaxInMemory.
type room struct {
	size  atomic.Int64
	waits bool // it is given back when the request is over
}

// grow makes the room this large until the body is read or its request is over. It reports whether there is
// so much.
func (r *room) grow(ctx context.Context, size int) bool {
	more := int64(size) - r.size.Load()
	if inMemory.Add(more) > MaxInMemory {
		inMemory.Add(-more)
		return false
	}
	r.size.Add(more)
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
func (r *room) giveBack() { inMemory.Add(-r.size.Swap(0)) }
