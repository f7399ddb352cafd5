package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxCalls is how many script calls are under way at once; what comes meanwhile
	// waits for one of them to end, and shares the next call. A request that comes when
	// there are fewer is sent at once, alone, by itself.
	maxCalls = 4

	// maxBatch bounds the checks of one call, and with them how long it keeps Redis from
	// everybody else.
	maxBatch = 64
)

// question is a group of checks on its way to the script.
type question struct {
	keys, args []any
	reply      string
	err        error
	done       chan struct{}
	abandoned  atomic.Bool // nobody waits for the answer
}

// batcher lets concurrent questions share calls. There is no timer: a batch is what has
// come while the calls before it were under way.
type batcher struct {
	run     func(ctx context.Context, questions []*question) (string, error)
	timeout time.Duration

	mu      sync.Mutex
	calls   int
	waiting []*question
}

// ask returns the part of the reply that is for the question. It returns when ctx is
// done, and the question may then be carried out or not.
func (b *batcher) ask(ctx context.Context, q *question) (string, error) {
	b.mu.Lock()
	if b.calls < maxCalls {
		b.calls++
		b.mu.Unlock()
		reply, err := b.run(ctx, []*question{q})
		b.mu.Lock()
		if len(b.waiting) == 0 {
			b.calls--
			b.mu.Unlock()
			return reply, err
		}
		batch := b.next()
		b.mu.Unlock()
		go b.serve(batch) // this question's request has waited long enough
		return reply, err
	}
	q.done = make(chan struct{})
	b.waiting = append(b.waiting, q)
	b.mu.Unlock()
	select {
	case <-q.done:
		return q.reply, q.err
	case <-ctx.Done():
		q.abandoned.Store(true)
		return "", ctx.Err()
	}
}

// next takes a batch off those that wait. The lock is held.
func (b *batcher) next() (batch []*question) {
	checks := 0
	for i, q := range b.waiting {
		if checks += len(q.keys); checks > maxBatch && i > 0 {
			b.waiting = append(b.waiting[:0:0], b.waiting[i:]...)
			return batch
		}
		if !q.abandoned.Load() {
			batch = append(batch, q)
		}
	}
	b.waiting = nil
	return batch
}

// serve makes calls until nobody waits.
func (b *batcher) serve(batch []*question) {
	for {
		if len(batch) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
			reply, err := b.run(ctx, batch)
			cancel()
			at := 8
			for _, q := range batch {
				if q.err = err; err == nil {
					end := at + replySize*len(q.keys)
					if len(batch) == 1 {
						q.reply = reply
					} else if len(reply) >= end {
						q.reply = reply[:8] + reply[at:end]
					}
					at = end
				}
				close(q.done)
			}
		}
		b.mu.Lock()
		if len(b.waiting) == 0 {
			b.calls--
			b.mu.Unlock()
			return
		}
		batch = b.next()
		b.mu.Unlock()
	}
}
