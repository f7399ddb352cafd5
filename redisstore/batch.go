package redisstore

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// maxCalls is how many script calls are under way at once.
	maxCalls = 8

	// maxBatch bounds the checks of one call, and with them how long it keeps Redis from
	// everybody else.
	maxBatch = 64

	// maxShare bounds the questions of one call. Equal ones cost Redis little, but
	// everybody in a call waits for all of it.
	maxShare = 512

	// idleTime is how long those who make calls stay on without one to make.
	idleTime = time.Second

	// maxHeld bounds how long questions are held back for the sake of a larger batch, if
	// the calls under way do not return.
	maxHeld = 500 * time.Microsecond
)

// batcher lets concurrent questions share calls. There is no timer: a batch is what has
// come while the calls before it were under way. A call is made when none is, or when as
// many questions wait as are under way. So who comes alone is sent alone and at once,
// and the more come, the more share a call: what costs is the way, not the decision.
//
// Where the last call was shared, those goroutines have their turn before the next one
// that could run at once: on a busy machine most of them bring questions.
type batcher struct {
	// send sends a call. Its error is that of all questions, or each has its own.
	send    func(ctx context.Context, c *call) error
	timeout time.Duration
	epoch   time.Time

	idle chan struct{} // one who makes calls takes on another

	mu         sync.Mutex
	calls      int
	shared     bool      // the last call was for several questions
	underWay   int       // questions of the calls
	head, tail *question // that wait
	waiting    int
	outstanding
}

// ask has a question answered, and returns when it is or ctx is done. In the latter case
// the question may then be carried out or not, and must not be used again.
func (b *batcher) ask(ctx context.Context, q *question) error {
	q.since = time.Since(b.epoch)
	b.mu.Lock()
	b.push(q)
	if !b.ready(q.since) {
		b.await(q)
		b.mu.Unlock()
		return q.wait(ctx)
	}
	b.calls++
	if b.shared || b.waiting > 1 {
		b.await(q)
		b.mu.Unlock()
		runtime.Gosched()
		b.mu.Lock()
	}
	if b.head != q || b.tail != q || q.ended.Load() { // others came or took it along, or it is too late
		b.mu.Unlock()
		b.start()
		return q.wait(ctx)
	}
	b.pop()
	b.outstanding.remove(q)
	b.underWay++
	b.shared = false
	b.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	c := newCall()
	c.add(q)
	err := b.send(ctx, c)
	if err == nil {
		err = q.err
	}
	more := b.over(c.questions)
	c.free()
	if more {
		b.start() // this question's request has waited long enough
	}
	return err
}

// start has somebody make calls: who has just done so, for his stack has grown to what it
// takes, or somebody new.
func (b *batcher) start() {
	select {
	case b.idle <- struct{}{}:
	default:
		go b.work()
	}
}

func (b *batcher) work() {
	end := time.NewTimer(idleTime)
	defer end.Stop()
	for {
		b.serve()
		end.Reset(idleTime)
		select {
		case <-b.idle:
		case <-end.C:
			return
		}
	}
}

// serve makes calls as long as there should be another.
func (b *batcher) serve() {
	for {
		runtime.Gosched()
		c := newCall()
		b.fill(c)
		var err error
		if len(c.questions) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
			err = b.send(ctx, c)
			cancel()
		}
		more := b.over(c.questions)
		for _, q := range c.questions {
			if err != nil {
				q.end(err)
			} else {
				q.end(q.err)
			}
		}
		c.free()
		if !more {
			return
		}
	}
}

// over ends a call, and begins another if one should be made.
func (b *batcher) over(questions []*question) (more bool) {
	now := time.Since(b.epoch)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range questions {
		b.outstanding.remove(q)
	}
	b.calls--
	b.underWay -= len(questions)
	if b.ready(now) {
		b.calls++
		return true
	}
	return false
}

// ready tells whether it is time for another call. The lock is held, as for push and pop.
func (b *batcher) ready(now time.Duration) bool {
	return b.head != nil && b.calls < maxCalls &&
		(b.calls == 0 || b.waiting >= min(b.underWay, maxBatch) || now-b.head.since > maxHeld)
}

func (b *batcher) push(q *question) {
	if b.head == nil {
		b.head = q
	} else {
		b.tail.next = q
	}
	b.tail = q
	b.waiting++
}

func (b *batcher) pop() *question {
	q := b.head
	b.head, q.next = q.next, nil
	b.waiting--
	return q
}

// fill takes those that wait into a call, but for those whose callers have left.
func (b *batcher) fill(c *call) {
	var room [maxBatch]*question
	for len(c.questions) <= maxShare-maxBatch {
		popped, checks := room[:0], c.checks
		b.mu.Lock()
		for b.head != nil && len(popped) < maxBatch && (checks == 0 || checks+len(b.head.items) <= maxBatch) {
			q := b.pop()
			if q.ended.Load() {
				b.outstanding.remove(q)
				continue
			}
			checks += len(q.items)
			popped = append(popped, q)
		}
		b.underWay += len(popped)
		b.shared = len(c.questions)+len(popped) > 1
		b.mu.Unlock()
		for _, q := range popped {
			c.add(q)
		}
		// Those who ask the same leave room for more.
		if len(popped) == 0 || c.checks > maxBatch/2 {
			return
		}
	}
}
