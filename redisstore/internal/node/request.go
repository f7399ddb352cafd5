package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
)

// Request is a request to one node, which may share a call with others.
type Request struct {
	protocol.Request

	// In a Cluster, where a slot may migrate from one node to another.
	asking bool // whether to send ASKING, because the slot migrates to the node
	single bool // whether it shares no call with others
	shared bool // whether it was in a call with other requests

	since, until   time.Duration // when it was made, and how long its caller waits
	hurried        bool          // the caller waits for less time than others
	sent           bool          // a call has it
	before, behind *Request      // see deadlines
	listed         bool
	done           chan error
	ended          atomic.Bool // the caller has its answer, or waits no more
}

// NewRequest returns an empty request.
func NewRequest() *Request { return &Request{done: make(chan error, 1)} }

// Clear makes the request an empty one, which keeps its room. A request whose caller has left
// must not be used again: the answer may be on its way.
func (r *Request) Clear() {
	r.Request.Clear()
	r.single = false
	r.again(false)
}

// size returns how many checks the request has.
func (r *Request) size() int { return len(r.Ops) }

// again makes a request ready to be sent again. It may have been answered with a redirection.
func (r *Request) again(asking bool) {
	r.asking, r.shared, r.Err = asking, false, nil
	r.hurried, r.sent = false, false
	r.ended.Store(false)
}

// migrating reports whether a request has failed because its slot migrates, while a call can have only keys that
// are in the same place, and it was in one with others. It looks at the request only if that was answered: a call may still use
// that of a caller that has left.
func (r *Request) migrating(err error) bool {
	return (redis.IsTryAgainError(err) || isAsk(err)) && r.shared
}

// lateness is the error of a request that was not sent in time.
func (r *Request) lateness() error {
	if r.hurried {
		return ErrLate
	}
	return errBusy
}

// deliver delivers the result to the waiting caller, and returns the request to it. It does
// nothing if the caller has given up.
func (r *Request) deliver(err error) {
	if r.ended.CompareAndSwap(false, true) {
		r.done <- err
	}
}

// wait waits for another goroutine to bring the answer.
func (r *Request) wait(ctx context.Context) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.ended.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-r.done
	}
}

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
