package algorithms

// Leases is what a [Leaser] remembers of one key: the leases by name, with their costs and
// their ends. The zero Leases is a key never seen.
//
// Each lease links to its neighbors in the order in which they end. Most keys have one lease, so there is no more
// than that.
type Leases struct {
	first, last *lease            // that ends first, and last
	spare       *lease            // was dropped, and is the next one; nil if there is none
	index       map[string]*lease // by name; nil while there are few leases
	count       int
	total       int64 // cost of all leases
}

// lease is a charge that is held under a name.
type lease struct {
	id         string
	ends, cost int64
	prev, next *lease // the leases that end before and after this one
}

// manyLeases is the number of leases above which there is an index. Fewer are searched one
// by one.
const manyLeases = 16

// Len returns how many leases are kept, including those that have ended.
func (l *Leases) Len() int { return l.count }

// find returns a lease, or nil if there is none of that name.
func (l *Leases) find(id string) *lease {
	if l.index != nil {
		return l.index[id]
	}
	one := l.first
	for one != nil && one.id != id {
		one = one.next
	}
	return one
}

// GiveBack ends a lease if its cost is at most cost, because a part of a lease cannot be
// given back. It reports whether it has ended one.
func (l *Leases) GiveBack(id string, cost int64) bool {
	one := l.find(id)
	if one == nil || one.cost > cost {
		return false
	}
	l.drop(one)
	return true
}

// link makes two leases neighbors; nil is either end of the order.
func (l *Leases) link(prev, next *lease) {
	if prev == nil {
		l.first = next
	} else {
		prev.next = next
	}
	if next == nil {
		l.last = prev
	} else {
		next.prev = prev
	}
}

func (l *Leases) drop(one *lease) {
	l.link(one.prev, one.next)
	l.count--
	l.total -= one.cost
	if delete(l.index, one.id); l.count < manyLeases/2 {
		l.index = nil
	}
	*one = lease{}
	l.spare = one
}

// put adds a lease that ends at ends, or renews it.
func (l *Leases) put(id string, ends, cost int64) {
	if one := l.find(id); one != nil {
		l.drop(one)
	}
	one := l.spare
	if l.spare = nil; one == nil {
		one = new(lease)
	}
	// Nearly always the new lease ends last.
	prev, next := l.last, (*lease)(nil)
	for prev != nil && prev.ends > ends {
		prev, next = prev.prev, prev
	}
	*one = lease{id: id, ends: ends, cost: cost}
	l.link(prev, one)
	l.link(one, next)
	l.count++
	l.total += cost
	if l.index != nil {
		l.index[id] = one
	} else if l.count > manyLeases {
		l.index = make(map[string]*lease, 2*manyLeases)
		for one := l.first; one != nil; one = one.next {
			l.index[one.id] = one
		}
	}
}

// expire drops the leases that have ended.
func (l *Leases) expire(now int64) {
	for l.first != nil && l.first.ends <= now {
		l.drop(l.first)
	}
}

// shorten lets leases that end later than latest end at another time, which must be earlier.
func (l *Leases) shorten(latest, to int64) {
	for l.last != nil && l.last.ends > latest {
		l.put(l.last.id, to, l.last.cost)
	}
}

// live returns how many slots are taken at now. It subtracts the leases that have ended,
// which are few and at the front.
func (l *Leases) live(now int64) int64 {
	n := l.total
	for one := l.first; one != nil && one.ends <= now; one = one.next {
		n -= one.cost
	}
	return n
}

// endOf returns when a slot comes back. The index counts, from 0, the slots that are live at
// now, in the order in which they end.
func (l *Leases) endOf(now, index int64) int64 {
	for one := l.first; one != nil; one = one.next {
		if one.ends <= now {
			continue
		}
		if index < one.cost {
			return one.ends
		}
		index -= one.cost
	}
	return now
}

// lastEnd returns when the last slot that is live at now comes back.
func (l *Leases) lastEnd(now int64) int64 {
	if l.last == nil {
		return now
	}
	return max(now, l.last.ends)
}

// Clone returns a copy that shares no memory with the original.
func (l *Leases) Clone() *Leases {
	c := new(Leases)
	for one := l.first; one != nil; one = one.next {
		c.put(one.id, one.ends, one.cost)
	}
	return c
}
