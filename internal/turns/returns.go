package turns

import (
	"slices"
	"time"
)

// offer is a turn that is given back. While it is under way it is in no line.
type offer struct {
	back func(at int64, told func(taken bool))
	slot slot
	line *line // nil: it is not kept if it is refused

	pause time.Duration // of the queue, which may be forgotten meanwhile
}

// give gives a turn back. A goroutine of its own does so, because a store may answer at
// once, and in order, because the last turn has to be first.
func (q *Queues) give(o offer) {
	q.returns = append(q.returns, o)
	if q.busy {
		return
	}
	release := q.hold()
	if release == nil { // the store is closed
		q.returns = nil
		return
	}
	q.busy = true
	go q.carryOut(release)
}

// carryOut returns turns until there are no more.
func (q *Queues) carryOut(release func()) {
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
			o.back(o.slot.at, func(taken bool) { q.told(o, taken) })
		}
	}
}

// told is called when it is known what the queue did with a turn.
func (q *Queues) told(o offer, taken bool) {
	if o.line == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if taken {
		if in := q.queues[o.line.queue.name]; in != nil {
			in.pause = firstPause
			in.again()
		}
		return
	}
	if !o.slot.due.After(time.Now()) {
		return
	}
	l := q.line(&Turn{Queue: o.line.queue.name, Cost: o.line.cost, Return: o.back})
	if l == nil {
		return
	}
	o.slot.refused = true
	l.add(o.slot)
	l.queue.pause = max(l.queue.pause, o.pause)
	q.settle(l)
}

// again offers the last spare turn once more. The queue can take back no other.
func (in *queue) again() {
	var last *line
	for _, l := range in.lines {
		if l.spare() > 0 && (last == nil || l.last().at > last.last().at) {
			last = l
		}
	}
	if last != nil {
		last.last().refused = false
		last.all.settle(last)
	}
}

// retry has the last spare turn offered again after a while.
func (in *queue) retry() {
	if in.alarm != nil || !slices.ContainsFunc(in.lines, func(l *line) bool { return l.spare() > 0 }) {
		return
	}
	all := in.lines[0].all
	in.alarm = time.AfterFunc(in.pause, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if in.alarm != nil {
			in.alarm = nil
			in.pause *= 2
			in.again()
		}
	})
}

// stop ends the retries of a queue that is gone.
func (in *queue) stop() {
	if in.alarm != nil {
		in.alarm.Stop()
		in.alarm = nil
	}
}

func (in *queue) remove(l *line) {
	in.lines = slices.DeleteFunc(in.lines, func(other *line) bool { return other == l })
}
