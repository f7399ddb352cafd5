package turns

import (
	"slices"
	"time"
)

// turnReturn is a turn that is being given back. It is in no line meanwhile.
type turnReturn struct {
	giveBack func(at int64, done func(taken bool))
	turn     lineTurn
	line     *line // the line that gets the turn if the queue refuses it; nil if none does

	pause time.Duration // of the queue, which may be removed meanwhile
}

// enqueueReturn gives a turn back to the queue. A goroutine does this, because a store may call
// done at once, and in order, because the queue takes only its last turn. The caller must hold the
// lock.
func (q *Queues) enqueueReturn(r turnReturn) {
	q.returns = append(q.returns, r)
	if q.busy {
		return
	}
	release := q.keepOpen()
	if release == nil { // the store is closed
		q.returns = nil
		return
	}
	q.busy = true
	go q.sendReturns(release)
}

// sendReturns gives turns back until there are no more.
func (q *Queues) sendReturns(release func()) {
	defer release()
	for {
		q.mu.Lock()
		all := q.returns
		q.returns, q.busy = nil, len(all) > 0
		q.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, r := range all {
			r.giveBack(r.turn.at, func(taken bool) { q.returned(r, taken) })
		}
	}
}

// returned is called when it is known whether the queue has taken a turn back. A turn that was
// refused becomes spare again.
func (q *Queues) returned(r turnReturn, taken bool) {
	if r.line == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if taken {
		if k := q.queues[r.line.queue.name]; k != nil {
			k.pause = firstPause
			k.retryLast()
		}
		return
	}
	if r.turn.due <= q.clock.Now() {
		return
	}
	l := q.line(&Turn{Queue: r.line.queue.name, Cost: r.line.cost, Return: r.giveBack})
	if l == nil {
		return
	}
	r.turn.refused = true
	l.add(r.turn)
	l.queue.pause = max(l.queue.pause, r.pause)
	q.balance(l)
}

// retryLast offers the last spare turn again. It is the only one that the queue may take back.
func (k *queue) retryLast() {
	var last *line
	for _, l := range k.lines {
		if l.spare() > 0 && (last == nil || l.last().at > last.last().at) {
			last = l
		}
	}
	if last != nil {
		last.last().refused = false
		last.queues.balance(last)
	}
}

// scheduleRetry sets the timer after which the last spare turn is offered again.
func (k *queue) scheduleRetry() {
	if k.retryTimer != nil || !slices.ContainsFunc(k.lines, func(l *line) bool { return l.spare() > 0 }) {
		return
	}
	queues := k.lines[0].queues
	k.retryTimer = queues.clock.AfterFunc(k.pause, func() {
		queues.mu.Lock()
		defer queues.mu.Unlock()
		if k.retryTimer != nil {
			k.retryTimer = nil
			k.pause *= 2
			k.retryLast()
		}
	})
}

// stopRetry stops the timer of a queue that is removed.
func (k *queue) stopRetry() {
	if k.retryTimer != nil {
		k.retryTimer.Stop()
		k.retryTimer = nil
	}
}

func (k *queue) remove(l *line) {
	k.lines = slices.DeleteFunc(k.lines, func(other *line) bool { return other == l })
}
