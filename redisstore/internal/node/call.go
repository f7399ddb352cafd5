package node

import (
	"context"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// call is a batch with the requests that wait for it. It is a context, too, whose deadline is always as far
// ahead as the timeout: a connection asks for it when a call was written, and has the time then at which Redis has been silent
// for too long. It has no timer, because connections need none.
type call struct {
	*protocol.Batch
	requests []*Request

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
	c.Add(&r.Request)
}

func (c *call) free() {
	clear(c.requests)
	c.requests = c.requests[:0]
	c.Clear()
	callPool.Put(c)
}
