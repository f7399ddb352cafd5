package redisstore

import (
	"context"
	"sync"
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

	// maxShare bounds the questions of one call. Equal ones cost Redis little, but
	// everybody in a call waits for all of it.
	maxShare = 512
)

// batcher lets concurrent questions share calls. There is no timer: a batch is what has
// come while the calls before it were under way.
type batcher struct {
	send    func(ctx context.Context, c *call) error
	timeout time.Duration

	mu         sync.Mutex
	calls      int
	head, tail *question // that wait
}

// ask has a question answered, and returns when it is or ctx is done. In the latter case
// the question may then be carried out or not, and must not be used again.
func (b *batcher) ask(ctx context.Context, q *question) error {
	b.mu.Lock()
	if b.calls >= maxCalls {
		b.push(q)
		b.mu.Unlock()
		return b.wait(ctx, q)
	}
	b.calls++
	b.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	c := newCall()
	c.add(q)
	err := b.send(ctx, c)
	c.free()

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.head == nil {
		b.calls--
	} else {
		go b.serve() // this question's request has waited long enough
	}
	return err
}

// wait waits for somebody else to bring the answer.
func (b *batcher) wait(ctx context.Context, q *question) error {
	q.timer.Reset(b.timeout)
	select {
	case <-q.done:
		q.timer.Stop()
		return q.err
	case <-q.timer.C:
		q.abandoned.Store(true)
		return context.DeadlineExceeded
	case <-ctx.Done():
		q.abandoned.Store(true)
		return ctx.Err()
	}
}

// push and pop need the lock.
func (b *batcher) push(q *question) {
	if b.head == nil {
		b.head = q
	} else {
		b.tail.next = q
	}
	b.tail = q
}

func (b *batcher) pop() *question {
	q := b.head
	b.head, q.next = q.next, nil
	return q
}

// next fills a call with those that wait. It gives up its turn, and returns false, if
// there is nobody.
func (b *batcher) next(c *call) bool {
	var room [maxBatch]*question
	for {
		popped := room[:0]
		checks := c.checks
		b.mu.Lock()
		for b.head != nil && len(popped) < maxBatch && (checks+len(b.head.items) <= maxBatch || checks == 0) {
			checks += len(b.head.items)
			popped = append(popped, b.pop())
		}
		if len(popped) == 0 && len(c.questions) == 0 {
			b.calls--
			b.mu.Unlock()
			return false
		}
		b.mu.Unlock()
		for _, q := range popped {
			if !q.abandoned.Load() {
				c.add(q)
			}
		}
		// Those who asked the same have left room.
		if len(popped) == 0 || c.checks > maxBatch/2 || len(c.questions) > maxShare-maxBatch {
			if len(c.questions) > 0 {
				return true
			}
		}
	}
}

// serve makes calls until nobody waits.
func (b *batcher) serve() {
	for {
		c := newCall()
		if !b.next(c) {
			c.free()
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
		err := b.send(ctx, c)
		cancel()
		for _, q := range c.questions {
			q.err = err
			q.done <- struct{}{}
		}
		c.free()
	}
}
