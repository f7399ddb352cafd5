package algorithms

import "container/list"

// Leases is the memory of a [Lender]: what is held under which name until when. The
// zero Leases is a key never seen.
type Leases struct {
	held  map[string]*list.Element
	order list.List // of *leased, the first to end first
	total int64     // cost of all of them
}

type leased struct {
	hold string
	ends int64
	cost int64
}

// Len is how many holds there are, those included that have ended.
func (l *Leases) Len() int { return len(l.held) }

// GiveBack ends a hold of no more than that cost. A hold ends as a whole: a part of one
// cannot be given back. It tells whether it was held.
func (l *Leases) GiveBack(hold string, cost int64) bool {
	if e, ok := l.held[hold]; !ok || e.Value.(*leased).cost > cost {
		return false
	}
	return l.drop(hold)
}

// drop ends a hold, and tells whether it was held.
func (l *Leases) drop(hold string) bool {
	e, ok := l.held[hold]
	if ok {
		l.total -= l.order.Remove(e).(*leased).cost
		delete(l.held, hold)
	}
	return ok
}

// put holds, or renews, until ends.
func (l *Leases) put(hold string, ends, cost int64) {
	l.drop(hold)
	if l.held == nil {
		l.held = make(map[string]*list.Element)
	}
	// Nearly always the new one ends last.
	at := l.order.Back()
	for at != nil && at.Value.(*leased).ends > ends {
		at = at.Prev()
	}
	lease := &leased{hold, ends, cost}
	l.total += cost
	if at == nil {
		l.held[hold] = l.order.PushFront(lease)
	} else {
		l.held[hold] = l.order.InsertAfter(lease, at)
	}
}

// expire drops what has ended, and what is not believed.
func (l *Leases) expire(now int64) {
	for e := l.order.Front(); e != nil && e.Value.(*leased).ends <= now; e = l.order.Front() {
		l.drop(e.Value.(*leased).hold)
	}
	for e := l.order.Back(); e != nil && e.Value.(*leased).ends > now+maxStepBack; e = l.order.Back() {
		l.drop(e.Value.(*leased).hold)
	}
}

// live is how much is held at now. What has ended stands in front, and is not much;
// behind stands what ends so late that it is not believed, which is nothing.
func (l *Leases) live(now int64) int64 {
	n := l.total
	for e := l.order.Front(); e != nil && e.Value.(*leased).ends <= now; e = e.Next() {
		n -= e.Value.(*leased).cost
	}
	for e := l.order.Back(); e != nil && e.Value.(*leased).ends > now+maxStepBack; e = e.Prev() {
		n -= e.Value.(*leased).cost
	}
	return n
}

// end is when the slot of that index comes back, in the order in which those that are
// live at now end.
func (l *Leases) end(now, index int64) int64 {
	for e := l.order.Front(); e != nil; e = e.Next() {
		lease := e.Value.(*leased)
		if lease.ends <= now {
			continue
		}
		if index < lease.cost {
			return lease.ends
		}
		index -= lease.cost
	}
	return now
}

// lastEnd is when the last slot that is live at now comes back.
func (l *Leases) lastEnd(now int64) int64 {
	for e := l.order.Back(); e != nil; e = e.Prev() {
		if ends := e.Value.(*leased).ends; ends <= now+maxStepBack {
			return ends
		}
	}
	return now
}

// Clone is a copy that shares nothing.
func (l *Leases) Clone() *Leases {
	c := new(Leases)
	for e := l.order.Front(); e != nil; e = e.Next() {
		lease := e.Value.(*leased)
		c.put(lease.hold, lease.ends, lease.cost)
	}
	return c
}
