package algorithms

import (
	"maps"
	"slices"
)

// Leases is the memory of a [Lender]: what is held under which name until when. The
// zero Leases is a key never seen.
//
// Most keys hold one lease, so a lease takes little: all stand in one slice, in no order,
// and each knows its neighbours in the order in which they end.
type Leases struct {
	all         []lease
	index       map[string]int32 // of all by hold, once they are many
	first, last int32            // to end
	total       int64            // cost of all of them
}

// lease is a hold. Places in the slice count from 1; 0 is none.
type lease struct {
	hold           string
	ends           int64
	cost           int32 // see MaxSlots
	before, behind int32 // that end before and after it
}

// manyLeases is how many leases have an index. Fewer are looked through.
const manyLeases = 16

// Len is how many holds there are, those included that have ended.
func (l *Leases) Len() int { return len(l.all) }

func (l *Leases) at(place int32) *lease { return &l.all[place-1] }

// find returns where a hold stands, 0 if it does not.
func (l *Leases) find(hold string) int32 {
	if l.index != nil {
		return l.index[hold]
	}
	return int32(slices.IndexFunc(l.all, func(one lease) bool { return one.hold == hold })) + 1
}

// GiveBack ends a hold of no more than that cost. A hold ends as a whole: a part of one
// cannot be given back. It tells whether it was held.
func (l *Leases) GiveBack(hold string, cost int64) bool {
	place := l.find(hold)
	if place == 0 || int64(l.at(place).cost) > cost {
		return false
	}
	l.drop(place)
	return true
}

// link makes one lease follow another; 0 stands for the ends of the order.
func (l *Leases) link(before, behind int32) {
	if before == 0 {
		l.first = behind
	} else {
		l.at(before).behind = behind
	}
	if behind == 0 {
		l.last = before
	} else {
		l.at(behind).before = before
	}
}

// drop ends a hold. The last of the slice takes its place.
func (l *Leases) drop(place int32) {
	gone := *l.at(place)
	l.total -= int64(gone.cost)
	l.link(gone.before, gone.behind)
	delete(l.index, gone.hold)
	end := int32(len(l.all))
	if moved := *l.at(end); place != end {
		*l.at(place) = moved
		l.link(moved.before, place)
		l.link(place, moved.behind)
		if l.index != nil {
			l.index[moved.hold] = place
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

// put holds, or renews, until ends.
func (l *Leases) put(hold string, ends, cost int64) {
	if place := l.find(hold); place != 0 {
		l.drop(place)
	}
	// Nearly always the new one ends last.
	before := l.last
	for before != 0 && l.at(before).ends > ends {
		before = l.at(before).before
	}
	behind := l.first
	if before != 0 {
		behind = l.at(before).behind
	}
	l.all = append(l.all, lease{hold: hold, ends: ends, cost: int32(cost)})
	l.total += cost
	place := int32(len(l.all))
	l.link(before, place)
	l.link(place, behind)
	l.note(hold, place)
}

// note keeps the index, if there is one or has to be.
func (l *Leases) note(hold string, place int32) {
	if l.index != nil {
		l.index[hold] = place
	} else if len(l.all) > manyLeases {
		l.index = make(map[string]int32, 2*manyLeases)
		for i := range l.all {
			l.index[l.all[i].hold] = int32(i + 1)
		}
	}
}

// expire drops what has ended, and what is not believed.
func (l *Leases) expire(now int64) {
	for l.first != 0 && l.at(l.first).ends <= now {
		l.drop(l.first)
	}
	for l.last != 0 && l.at(l.last).ends > now+maxStepBack {
		l.drop(l.last)
	}
}

// live is how much is held at now. What has ended stands in front, and is not much;
// behind stands what ends so late that it is not believed, which is nothing.
func (l *Leases) live(now int64) int64 {
	n := l.total
	for i := l.first; i != 0 && l.at(i).ends <= now; i = l.at(i).behind {
		n -= int64(l.at(i).cost)
	}
	for i := l.last; i != 0 && l.at(i).ends > now+maxStepBack; i = l.at(i).before {
		n -= int64(l.at(i).cost)
	}
	return n
}

// end is when the slot of that index comes back, in the order in which those that are
// live at now end.
func (l *Leases) end(now, index int64) int64 {
	for i := l.first; i != 0; i = l.at(i).behind {
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

// lastEnd is when the last slot that is live at now comes back.
func (l *Leases) lastEnd(now int64) int64 {
	for i := l.last; i != 0; i = l.at(i).before {
		if ends := l.at(i).ends; ends <= now+maxStepBack {
			return ends
		}
	}
	return now
}

// Clone is a copy that shares nothing.
func (l *Leases) Clone() *Leases {
	c := *l
	c.all, c.index = slices.Clone(l.all), maps.Clone(l.index)
	return &c
}
