package node

import (
	"context"
	"time"
)

// deadlines ends the requests whose time is over while their callers wait for another
// goroutine to bring the answer. All have the same time, so they are a list in the order in
// which they came, and one timer is enough, which is not set for each: it ends those
// whose time is over, and is set for the next. The batcher's lock guards it.
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

// await puts a request on the list. The lock is held.
func (b *batcher) await(r *Request) {
	b.deadlines.add(r)
	if b.deadlines.set {
		return
	}
	b.deadlines.set = true
	if b.deadlines.timer == nil {
		b.deadlines.timer = time.AfterFunc(b.timeout, b.endOverdue)
	} else {
		b.deadlines.timer.Reset(b.timeout)
	}
}

// endOverdue is what the timer does.
func (b *batcher) endOverdue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, d := time.Since(b.epoch), &b.deadlines
	for d.first != nil && now-d.first.since >= b.timeout {
		r := d.first
		d.remove(r)
		r.deliver(context.DeadlineExceeded)
	}
	if d.set = d.first != nil; d.set {
		d.timer.Reset(d.first.since + b.timeout - now)
	}
}
