package node

import (
	"context"
	"time"
)

// deadlines ends the requests whose time is over while their callers wait for another
// goroutine to bring the answer. All have the same time, so they are a list in the order in
// which they came, and one timer is enough, which is not set for each: it ends those
// whose time is over, and is set for the next. Those that wait for a call are the last of the list.
// The batcher's lock guards it.
//
// As long as Redis answers, a request has much time to be sent: it is this process that lets it wait. If the
// last that is known is that calls got no answer, it has the time that a call may take.
type deadlines struct {
	first, last *Request
	timer       *time.Timer
	set         bool
}

func (d *deadlines) add(r *Request) {
	r.listed, r.before, r.behind = true, d.last, nil
	if d.last == nil {
		d.first = r
	} else {
		d.last.behind = r
	}
	d.last = r
}

// remove takes a request off the list if it is on it.
func (d *deadlines) remove(r *Request) {
	if !r.listed {
		return
	}
	if r.before == nil {
		d.first = r.behind
	} else {
		r.before.behind = r.behind
	}
	if r.behind == nil {
		d.last = r.before
	} else {
		r.behind.before = r.before
	}
	r.listed, r.before, r.behind = false, nil, nil
}

// await has the requests on the list end in time. The lock is held.
func (b *batcher) await() {
	if !b.deadlines.set {
		b.deadlines.set = true
		b.deadlines.timer.Reset(b.has())
	}
}

// has is how much time a request has at present.
func (b *batcher) has() time.Duration {
	if b.hung() {
		return b.timeout
	}
	return b.patience
}

// tick is what the timer does.
func (b *batcher) tick() {
	b.mu.Lock()
	b.endOverdue(time.Since(b.epoch))
	b.mu.Unlock()
}

// endOverdue ends the requests whose time is over, and sets the timer. What a call has is answered by that
// soon, unless Redis hangs.
func (b *batcher) endOverdue(now time.Duration) {
	d := &b.deadlines
	for r := d.first; r != nil && now-r.since >= b.has(); {
		next := r.behind
		switch {
		case r.sent && b.hung():
			d.remove(r)
			r.deliver(context.DeadlineExceeded)
		case r.sent:
		case b.hung():
			d.remove(b.pop())
			r.deliver(errSilent)
		default:
			b.waited += now - r.since
			d.remove(b.pop())
			r.deliver(errBusy)
		}
		r = next
	}
	if d.set = d.first != nil; !d.set {
		return
	}
	left := d.first.since + b.has() - now
	if left <= 0 {
		left = b.timeout
	}
	d.timer.Reset(left)
}
