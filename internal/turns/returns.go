package turns

import (
	"slices"
	"time"
)

// offer is a turn that is given back. While it is under way it is in no line.
type offer struct {
	giveBack func(at int64, told func(taken bool))
	turn     lineTurn
	line     *line // nil: it is not kept if it is refused

	pause time.Duration // of the queue, which may be forgotten meanwhile
}

// giveBack gives a turn back. A goroutine of its own does so, because a store may answer at
// once, and in order, because the last turn has to be first.
func (q *Queues) giveBack(o offer) {
	q.returns = append(q.returns, o)
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

// sendReturns returns turns until there are no more.
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
		for _, o := range all {
			o.giveBack(o.turn.at, func(taken bool) { q.returned(o, taken) })
		}
	}
}

// returned is called when it is known what the queue did with a turn.
func (q *Queues) returned(o offer, taken bool) {
	if o.line == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if taken {
		if in := q.queues[o.line.queue.name]; in != nil {
			in.pause = firstPause
			in.offerSpare()
		}
		return
	}
	if !o.turn.due.After(time.Now()) {
		return
	}
	l := q.line(&Turn{Queue: o.line.queue.name, Cost: o.line.cost, Return: o.giveBack})
	if l == nil {
		return
	}
	o.turn.refused = true
	l.add(o.turn)
	l.queue.pause = max(l.queue.pause, o.pause)
	q.balance(l)
}

// offerSpare offers the last spare turn once more. The queue can take back no other.
func (in *queue) offerSpare() {
	var last *line
	for _, l := range in.lines {
		if l.spare() > 0 && (last == nil || l.last().at > last.last().at) {
			last = l
		}
	}
	if last != nil {
		last.last().refused = false
		last.queues.balance(last)
	}
}

// scheduleRetry has the last spare turn offered again after a while.
func (in *queue) scheduleRetry() {
	if in.retryTimer != nil || !slices.ContainsFunc(in.lines, func(l *line) bool { return l.spare() > 0 }) {
		return
	}
	all := in.lines[0].queues
	in.retryTimer = time.AfterFunc(in.pause, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if in.retryTimer != nil {
			in.retryTimer = nil
			in.pause *= 2
			in.offerSpare()
		}
	})
}

// stopRetry ends the retries of a queue that is gone.
func (in *queue) stopRetry() {
	if in.retryTimer != nil {
		in.retryTimer.Stop()
		in.retryTimer = nil
	}
}

func (in *queue) remove(l *line) {
	in.lines = slices.DeleteFunc(in.lines, func(other *line) bool { return other == l })
}
