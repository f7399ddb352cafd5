package node

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxCalls is how many script calls are under way at once.
	maxCalls = 8

	// maxBatch bounds the checks of one call, and with them how long the call keeps Redis from
	// other work.
	maxBatch = 64

	// maxShare bounds the requests of one call. Equal ones cost Redis little, but all
	// requests of a call wait for all of it.
	maxShare = 512

	// idleTime is how long a worker stays on without a call to make.
	idleTime = time.Second

	// leastGap is the least time from one call to the next one, while neither the calls under way return nor
	// a whole batch waits.
	leastGap = 2 * time.Millisecond
)

// batcher lets concurrent requests share calls. A batch is what has come while the calls
// before it were under way. A call is made when no call is under way, when a whole batch waits, or
// some time after the last one: if Redis is far, calls are spread over the round trip. So a lone
// request is sent alone and at once, and the more requests come, the more share a call: the round
// trip is what costs, not the decision. A timer makes the calls that are due when no request comes
// and no call returns.
//
// The deadlines of a request and of its call have nothing to do with each other: a call lasts
// as long as a Redis that works may take, although the requests that wait for it may have less
// time left. A request that misses its own deadline proves nothing against Redis or the
// connection. Requests wait for calls as long as Redis answers, see deadlines.
//
// If the last call was shared, the goroutines of other requests run before the next call that
// could be made at once: on a busy machine most of them bring requests. These join that call.
type batcher struct {
	// send makes a call. Its error is that of all requests, or each has its own.
	send     func(ctx context.Context, c *call) error
	timeout  time.Duration
	patience time.Duration // how long a request waits at most
	epoch    time.Time
	trip     *distance
	links    *atomic.Int32 // how many connections there are to a Redis that is far

	idle chan struct{} // wakes an idle worker

	mu        sync.Mutex
	calls     int
	unfilled  int      // calls that were begun and have not taken their requests yet
	shared    bool     // the last call was for several requests
	head      *Request // the first request that waits for a call, and all behind it do
	waiting   int
	sent      time.Duration // when the last call was begun
	due       *time.Timer   // of the next call, if nothing else makes it
	dueSet    bool
	deadlines deadlines
	waited    time.Duration // by all requests so far, before calls took them
	answered  time.Duration // when a call was last answered
	hangs     int           // calls since then that were not, one after the other
	hungAt    time.Duration // when the last of them ended
}

func newBatcher(timeout time.Duration, trip *distance, links *atomic.Int32, send func(context.Context, *call) error) *batcher {
	b := &batcher{timeout: timeout, patience: patienceFor(timeout), epoch: time.Now(), trip: trip, links: links, send: send, idle: make(chan struct{})}
	b.due, b.deadlines.timer = time.AfterFunc(b.patience, b.makeDue), time.AfterFunc(b.patience, b.tick)
	b.due.Stop()
	b.deadlines.timer.Stop()
	return b
}

// do has a request answered, and returns when it is or ctx is done. In the latter case it is
// not known whether the request is carried out, and it must not be used again.
func (b *batcher) do(ctx context.Context, r *Request) error {
	r.since = time.Since(b.epoch)
	r.until = r.since + b.patience
	if deadline, ok := ctx.Deadline(); ok {
		if until := deadline.Sub(b.epoch); until < r.until {
			r.until, r.hurried = until, true
		}
	}
	b.mu.Lock()
	b.push(r)
	if !b.ready(r.since) {
		b.await()
		b.awaitNext(r.since)
		b.mu.Unlock()
		return r.wait(ctx)
	}
	b.begin(r.since)
	crowd := b.shared || b.waiting > 1
	if crowd || r.hurried {
		b.await()
	}
	if crowd && !r.hurried {
		b.mu.Unlock()
		runtime.Gosched() // others may come
		b.mu.Lock()
	}
	// A call lasts longer than a request in a hurry can wait, others came or took it along, or it is too late.
	if r.hurried || b.head != r || b.waiting > 1 || r.ended.Load() {
		b.mu.Unlock()
		b.start()
		return r.wait(ctx)
	}
	b.pop()
	b.deadlines.remove(r)
	b.unfilled--
	b.shared = false
	b.mu.Unlock()
	return b.lone(r)
}

// lone makes a call that was begun, for a request that shares it with no other.
func (b *batcher) lone(r *Request) error {
	c := newCall()
	c.add(r)
	now, failed := b.make(c)
	err := cmp.Or(failed, r.Err)
	more := b.over(c, now, failed)
	c.free()
	if more {
		b.start() // this request has waited long enough
	}
	return err
}

// make makes a call, and returns when it was over.
func (b *batcher) make(c *call) (time.Duration, error) {
	c.begun, c.timeout = time.Since(b.epoch), b.timeout
	err := b.send(c, c)
	now := time.Since(b.epoch)
	if err == nil {
		b.trip.measure(now - c.begun)
	}
	return now, err
}

// start wakes an idle worker, whose stack has already grown, or starts a new one.
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
		if len(c.requests) > 0 {
			now, err = b.make(c)
		} else {
			now = time.Since(b.epoch)
		}
		more := b.over(c, now, err)
		for _, r := range c.requests {
			r.deliver(cmp.Or(err, r.Err))
		}
		c.free()
		if !more {
			return
		}
	}
}

// over ends a call, and begins another if one should be made.
func (b *batcher) over(c *call, now time.Duration, err error) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range c.requests {
		b.deadlines.remove(r)
	}
	b.calls--
	if len(c.requests) > 0 {
		b.note(c, now, err)
	}
	return b.next(now)
}

// hangsAfter is how many calls in a row must get no answer for Redis to count as hanging. After one, it may be this
// machine or that of Redis that has stalled for a moment, so what waits is sent.
const hangsAfter = 2

// hung reports whether the last that is known of Redis is that it hangs.
func (b *batcher) hung() bool { return b.hangs >= hangsAfter }

// note takes note of what a call says of Redis. A call that got no answer says something if no other was answered
// since it was begun. Those that were under way together count as one.
func (b *batcher) note(c *call, now time.Duration, err error) {
	switch {
	case replied(err):
		b.answered, b.hangs = now, 0
	case Failure(err) == store.FailureTimeout && b.answered <= c.begun && (b.hangs == 0 || b.hungAt <= c.begun):
		b.hangs++
		b.hungAt = now
		b.endOverdue(now)
	}
}

// next begins a call if one should be made, or sets the timer for it. The lock is held, as for
// ready, begin, push and pop.
func (b *batcher) next(now time.Duration) bool {
	if b.ready(now) {
		b.begin(now)
		return true
	}
	b.awaitNext(now)
	return false
}

// ready reports whether it is time for another call.
func (b *batcher) ready(now time.Duration) bool {
	switch {
	case b.head == nil || b.calls >= b.most():
		return false
	case b.calls == 0 || b.waiting >= (b.unfilled+1)*maxBatch:
		return true
	case b.unfilled > 0:
		return false // that call takes all that wait
	case b.trip.is() == 0:
		return false // the first call says how far Redis is, and has a connection made
	}
	return now-b.sent >= b.gap()
}

// gap is the time from one call to the next one, while neither the calls under way return nor a whole batch waits. Calls
// to a Redis that is far last until the first of them is back.
func (b *batcher) gap() time.Duration { return max(leastGap, b.trip.is()/time.Duration(b.most())) }

// most is how many calls there may be at once: from afar, as many as have a connection.
func (b *batcher) most() int {
	if b.remote() {
		return max(1, min(maxCalls, int(b.links.Load())))
	}
	return maxCalls
}

func (b *batcher) begin(now time.Duration) {
	b.calls++
	b.unfilled++
	b.sent = now
}

// awaitNext sets the timer for the requests that wait, in case that no other request comes and no call returns.
func (b *batcher) awaitNext(now time.Duration) {
	if b.dueSet || b.head == nil || b.calls >= b.most() || b.trip.is() == 0 {
		return
	}
	b.dueSet = true
	b.due.Reset(max(b.sent+b.gap()-now, 0))
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

func (b *batcher) push(r *Request) {
	b.deadlines.add(r)
	if b.head == nil {
		b.head = r
	}
	b.waiting++
}

func (b *batcher) pop() *Request {
	r := b.head
	b.head = r.behind
	b.waiting--
	return r
}

// fill takes the requests that wait into a call, but for those whose callers have left and
// those that cannot be answered in time.
func (b *batcher) fill(c *call) {
	var room [maxBatch]*Request
	unfilled := 1
	for len(c.requests) <= maxShare-maxBatch {
		popped, checks := room[:0], c.Checks()
		now := time.Since(b.epoch)
		last := now + b.lead()
		b.mu.Lock()
		for b.head != nil && len(popped) < maxBatch && (checks == 0 || checks+b.head.size() <= maxBatch) {
			r := b.pop()
			if r.until < last {
				r.deliver(r.lateness())
			}
			if r.ended.Load() {
				b.deadlines.remove(r)
				continue
			}
			r.sent = true
			b.waited += max(0, now-r.since)
			checks += r.size()
			popped = append(popped, r)
		}
		b.awaitNext(now) // for those that are left
		b.unfilled -= unfilled
		unfilled = 0
		if len(popped) > 0 {
			b.shared = len(c.requests)+len(popped) > 1
		}
		b.mu.Unlock()
		for _, r := range popped {
			c.add(r)
		}
		// Requests for the same leave room for more.
		if len(popped) == 0 || c.Checks() > maxBatch/2 {
			break
		}
	}
}
