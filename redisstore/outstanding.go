package redisstore

import (
	"context"
	"time"
)

// outstanding are the questions whose callers wait for somebody else to bring the answer,
// in the order in which they came. All wait equally long, so one timer is enough, and it
// need not be touched for each: it ends those whose time is over, and is set for the next.
// The batcher's lock guards it.
type outstanding struct {
	first, last *question
	alarm       *time.Timer
	set         bool
}

func (o *outstanding) add(q *question) {
	q.listed, q.before, q.behind = true, o.last, nil
	if o.last == nil {
		o.first = q
	} else {
		o.last.behind = q
	}
	o.last = q
}

// remove takes a question off the list if it is on it.
func (o *outstanding) remove(q *question) {
	if !q.listed {
		return
	}
	if q.before == nil {
		o.first = q.behind
	} else {
		q.before.behind = q.behind
	}
	if q.behind == nil {
		o.last = q.before
	} else {
		q.behind.before = q.before
	}
	q.listed, q.before, q.behind = false, nil, nil
}

// await puts a question on the list. The lock is held.
func (b *batcher) await(q *question) {
	b.outstanding.add(q)
	if b.set {
		return
	}
	b.set = true
	if b.alarm == nil {
		b.alarm = time.AfterFunc(b.timeout, b.endOverdue)
	} else {
		b.alarm.Reset(b.timeout)
	}
}

// endOverdue is what the alarm does.
func (b *batcher) endOverdue() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Since(b.epoch)
	for b.first != nil && now-b.first.since >= b.timeout {
		q := b.first
		b.outstanding.remove(q)
		q.end(context.DeadlineExceeded)
	}
	if b.set = b.first != nil; b.set {
		b.alarm.Reset(b.first.since + b.timeout - now)
	}
}

// end lets the caller go, unless he is gone. The question is his again.
func (q *question) end(err error) {
	if q.ended.CompareAndSwap(false, true) {
		q.done <- err
	}
}

// wait waits for somebody else to bring the answer.
func (q *question) wait(ctx context.Context) error {
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		if q.ended.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-q.done
	}
}
