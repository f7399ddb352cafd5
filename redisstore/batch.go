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

// batcher lets concurrent questions share calls. A batch is what has come while the calls
// before it were under way. A call is made when none is, or when as many questions wait as
// are under way. So who comes alone is sent alone and at once, and the more come, the more
// share a call: what costs is the way, not the decision. To a Redis that is far, calls are
// made at regular intervals instead, see spread, and a timer makes those that are due when
// no question comes and no call returns.
//
// A question has a deadline, and so has a call, but these have nothing to do with each
// other: a call lasts as long as a Redis that works may take, although those who wait for
// it may have less time left. What is late by the deadline of a question proves nothing
// against Redis or the connection.
//
// Where the last call was shared, those goroutines have their turn before the next one
// that could run at once: on a busy machine most of them bring questions.
type batcher struct {
	// send sends a call. Its error is that of all questions, or each has its own.
	send    func(ctx context.Context, c *call) error
	timeout time.Duration
	epoch   time.Time
	trip    distance
	links   links

	idle chan struct{} // one who makes calls takes on another

	mu         sync.Mutex
	calls      int
	shared     bool      // the last call was for several questions
	underWay   int       // questions of the calls
	head, tail *question // that wait
	waiting    int
	sent       time.Duration           // when the last call was begun
	begun      [maxCalls]time.Duration // when the last calls were, in turn
	begins     int                     // where the next one's place is
	due        *time.Timer             // of the next call to a Redis that is far
	dueSet     bool
	outstanding
}

// ask has a question answered, and returns when it is or ctx is done. In the latter case
// the question may then be carried out or not, and must not be used again.
func (b *batcher) ask(ctx context.Context, q *question) error {
	q.since = time.Since(b.epoch)
	q.until = q.since + b.timeout
	hurried := false
	if deadline, ok := ctx.Deadline(); ok {
		if until := deadline.Sub(b.epoch); until < q.until {
			q.until, hurried = until, true
		}
	}
	b.mu.Lock()
	b.push(q)
	ready := b.ready(q.since)
	if ready {
		b.begin(q.since)
	}
	if hurried || !ready { // a call lasts longer than who is in a hurry can wait
		b.await(q)
		b.awaitNext(q.since)
		b.mu.Unlock()
		if ready {
			b.start()
		}
		return q.wait(ctx)
	}
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

	c := newCall()
	c.add(q)
	now, err := b.make(c)
	if err == nil {
		err = q.err
	}
	more := b.over(c.questions, now)
	c.free()
	if more {
		b.start() // this question's request has waited long enough
	}
	return err
}

// make makes a call, and returns when it was over.
func (b *batcher) make(c *call) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	begun := time.Since(b.epoch)
	err := b.send(ctx, c)
	now := time.Since(b.epoch)
	if err == nil {
		b.trip.measure(now - begun)
	}
	return now, err
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
		var now time.Duration
		if len(c.questions) > 0 {
			now, err = b.make(c)
		} else {
			now = time.Since(b.epoch)
		}
		more := b.over(c.questions, now)
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
func (b *batcher) over(questions []*question, now time.Duration) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range questions {
		b.outstanding.remove(q)
	}
	b.calls--
	b.underWay -= len(questions)
	return b.next(now)
}

// next begins a call if one should be made, or sees to it that it is when it is due. The
// lock is held, as for ready, begin, push and pop.
func (b *batcher) next(now time.Duration) bool {
	if b.ready(now) {
		b.begin(now)
		return true
	}
	b.awaitNext(now)
	return false
}

// ready tells whether it is time for another call.
func (b *batcher) ready(now time.Duration) bool {
	switch {
	case b.head == nil || b.calls >= b.most():
		return false
	case b.calls == 0 || b.waiting >= maxBatch:
		return true
	}
	switch {
	case b.far():
		return now-b.sent >= b.spread()
	case b.trip.is() == 0:
		return false // the first call says how far Redis is, and has a connection made
	}
	return b.waiting >= b.underWay || now-b.head.since > maxHeld
}

// most is how many calls there may be at once: from afar, as many as have a connection.
func (b *batcher) most() int {
	if b.remote() {
		return max(1, min(maxCalls, int(b.links.count.Load())))
	}
	return maxCalls
}

func (b *batcher) begin(now time.Duration) {
	b.calls++
	b.sent, b.begun[b.begins] = now, now
	b.begins = (b.begins + 1) % maxCalls
}

// awaitNext sets the timer if Redis is far and nothing else will have the questions sent
// that wait.
func (b *batcher) awaitNext(now time.Duration) {
	if b.dueSet || !b.far() || b.head == nil || b.calls >= b.most() {
		return
	}
	b.dueSet = true
	pause := max(b.sent+b.spread()-now, 0)
	if b.due == nil {
		b.due = time.AfterFunc(pause, b.makeDue)
	} else {
		b.due.Reset(pause)
	}
}

// makeDue is what the timer does.
func (b *batcher) makeDue() {
	b.mu.Lock()
	b.dueSet = false
	more := b.next(time.Since(b.epoch))
	b.mu.Unlock()
	if more {
		b.serve()
	}
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

// fill takes those that wait into a call, but for those whose callers have left and those
// that cannot be answered in time.
func (b *batcher) fill(c *call) {
	var room [maxBatch]*question
	for len(c.questions) <= maxShare-maxBatch {
		popped, checks := room[:0], c.checks
		last := time.Since(b.epoch) + b.lead()
		b.mu.Lock()
		for b.head != nil && len(popped) < maxBatch && (checks == 0 || checks+len(b.head.items) <= maxBatch) {
			q := b.pop()
			if q.until < last {
				q.end(errLate)
			}
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
			break
		}
	}
	if b.far() {
		b.mu.Lock()
		b.awaitNext(time.Since(b.epoch)) // for those that are left
		b.mu.Unlock()
	}
}
