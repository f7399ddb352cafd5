package algorithms

import (
	"maps"
	"slices"
)

// Leases is what a [Leaser] remembers of one key: the leases by name, with their costs and
// their ends. The zero Leases is a key never seen.
//
// Most keys have one lease, so a lease is kept small: all are in one slice, in no order,
// and each one links to its neighbors in the order in which leases end.
type Leases struct {
	all         []lease
	index       map[string]int32 // positions by name; nil while there are few leases
	first, last int32            // positions of the lease that ends first, and last
	total       int64            // cost of all leases
}

// lease is a charge that is held under a name. Positions in the slice count from 1; 0 means
// none.
type lease struct {
	id         string
	ends       int64
	cost       int32 // at most MaxSlots
	prev, next int32 // positions of the leases that end before and after this one
}

// manyLeases is the number of leases above which there is an index. Fewer are searched one
// by one.
const manyLeases = 16

// Len returns how many leases are kept, including those that have ended.
func (l *Leases) Len() int { return len(l.all) }

func (l *Leases) at(position int32) *lease { return &l.all[position-1] }

// find returns the position of a lease, or 0 if there is none of that name.
func (l *Leases) find(id string) int32 {
	if l.index != nil {
		return l.index[id]
	}
	return int32(slices.IndexFunc(l.all, func(one lease) bool { return one.id == id })) + 1
}

// GiveBack ends a lease if its cost is at most cost, because a part of a lease cannot be
// given back. It reports whether it has ended one.
func (l *Leases) GiveBack(id string, cost int64) bool {
	position := l.find(id)
	if position == 0 || int64(l.at(position).cost) > cost {
		return false
	}
	l.drop(position)
	return true
}

// link makes two leases neighbors; 0 is either end of the order.
func (l *Leases) link(prev, next int32) {
	if prev == 0 {
		l.first = next
	} else {
		l.at(prev).next = next
	}
	if next == 0 {
		l.last = prev
	} else {
		l.at(next).prev = prev
	}
}

// drop removes a lease. The last one of the slice moves to its position.
func (l *Leases) drop(position int32) {
	gone := *l.at(position)
	l.total -= int64(gone.cost)
	l.link(gone.prev, gone.next)
	delete(l.index, gone.id)
	end := int32(len(l.all))
	if moved := *l.at(end); position != end {
		*l.at(position) = moved
		l.link(moved.prev, position)
		l.link(position, moved.next)
		if l.index != nil {
			l.index[moved.id] = position
		}
	}
	l.all[end-1] = lease{}
	l.all = l.all[:end-1]
	if len(l.all) < manyLeases/2 {
		l.index = nil
	}
	if len(l.all) < cap(l.all)/4 {
		l.all = slices.Clone(l.all)
	}
}

// put adds a lease that ends at ends, or renews it.
func (l *Leases) put(id string, ends, cost int64) {
	if position := l.find(id); position != 0 {
		l.drop(position)
	}
	// Nearly always the new lease ends last.
	prev := l.last
	for prev != 0 && l.at(prev).ends > ends {
		prev = l.at(prev).prev
	}
	next := l.first
	if prev != 0 {
		next = l.at(prev).next
	}
	l.all = append(l.all, lease{id: id, ends: ends, cost: int32(cost)})
	l.total += cost
	position := int32(len(l.all))
	l.link(prev, position)
	l.link(position, next)
	l.addToIndex(id, position)
}

// addToIndex adds a lease to the index, and makes the index once there are many leases.
func (l *Leases) addToIndex(id string, position int32) {
	if l.index != nil {
		l.index[id] = position
	} else if len(l.all) > manyLeases {
		l.index = make(map[string]int32, 2*manyLeases)
		for i := range l.all {
			l.index[l.all[i].id] = int32(i + 1)
		}
	}
}

// expire drops the leases that have ended, and those that end so late that they are damaged.
func (l *Leases) expire(now int64) {
	for l.first != 0 && l.at(l.first).ends <= now {
		l.drop(l.first)
	}
	for l.last != 0 && l.at(l.last).ends > now+maxStepBack {
		l.drop(l.last)
	}
}

// shorten lets leases that end later than latest end at another time, which must be earlier. What is damaged
// or has ended stays as it is: the clock may go back to where it counts.
func (l *Leases) shorten(now, latest, to int64) {
	for i := l.lastLive(now); i != 0 && l.at(i).ends > latest; i = l.lastLive(now) {
		late := *l.at(i)
		l.put(late.id, to, int64(late.cost))
	}
}

// live returns how many slots are taken at now. It subtracts the leases that have ended,
// which are few and at the front, and those that end so late that they are damaged, which
// are at the back and normally none.
func (l *Leases) live(now int64) int64 {
	n := l.total
	for i := l.first; i != 0 && l.at(i).ends <= now; i = l.at(i).next {
		n -= int64(l.at(i).cost)
	}
	for i := l.last; i != 0 && l.at(i).ends > now+maxStepBack; i = l.at(i).prev {
		n -= int64(l.at(i).cost)
	}
	return n
}

// endOf returns when a slot comes back. The index counts, from 0, the slots that are live at
// now, in the order in which they end.
func (l *Leases) endOf(now, index int64) int64 {
	for i := l.first; i != 0; i = l.at(i).next {
		one := l.at(i)
		if one.ends <= now {
			continue
		}
		if index < int64(one.cost) {
			return one.ends
		}
		index -= int64(one.cost)
	}
	return now
}

// lastLive returns the position of the lease that ends last and is not damaged, or 0.
func (l *Leases) lastLive(now int64) int32 {
	i := l.last
	for i != 0 && l.at(i).ends > now+maxStepBack {
		i = l.at(i).prev
	}
	return i
}

// lastEnd returns when the last slot that is live at now comes back.
func (l *Leases) lastEnd(now int64) int64 {
	if i := l.lastLive(now); i != 0 {
		return l.at(i).ends
	}
	return now
}

// Clone returns a copy that shares no memory with the original.
func (l *Leases) Clone() *Leases {
	c := *l
	c.all, c.index = slices.Clone(l.all), maps.Clone(l.index)
	return &c
}
