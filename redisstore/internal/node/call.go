package node

import (
	"context"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// call is a batch with the requests that wait for it. It is a context, too, whose deadline is always as far
// ahead as the timeout, see silent. It has no timer, because connections need none.
type call struct {
	*protocol.Batch
	requests []*Request
	lending  []*Request // those of them that ask zones that lend
	lent     int        // how many checks these have

	context.Context
	begun   time.Duration // since the epoch of the batcher
	timeout time.Duration
}

// Deadline implements [context.Context].
func (c *call) Deadline() (time.Time, bool) { return time.Now().Add(c.timeout), true }

var callPool = sync.Pool{New: func() any { return &call{Batch: protocol.NewBatch(), Context: context.Background()} }}

func newCall() *call { return callPool.Get().(*call) }

func (c *call) add(r *Request) {
	c.requests = append(c.requests, r)
	if len(r.Lend) > 0 {
		c.lending = append(c.lending, r)
		c.lent += len(r.Lend)
	} else {
		c.Add(&r.Request)
	}
}

// size returns how many checks the call has.
func (c *call) size() int { return c.Checks() + c.lent }

func (c *call) free() {
	clear(c.requests)
	clear(c.lending)
	c.requests, c.lending, c.lent = c.requests[:0], c.lending[:0], 0
	c.Clear()
	callPool.Put(c)
}
