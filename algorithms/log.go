package algorithms

import (
	"slices"
	"sort"
)

// Log is the memory of a [Recorder]: a key's charges, oldest first, each with its time
// and how many events it counts for. It is a ring that grows with what it holds, a
// quarter at a time, whatever the limit is. The zero Log is a key never seen.
type Log struct {
	times []int64
	head  int // index of the oldest
	size  int
	sums  *sums // nil while each charge counts for one event
}

// sums are running sums of what charges cost beyond one event each. The events of
// any part of the log are then the number of its charges plus one difference, however
// large they are, and a charge of one event leaves the sums as they are.
type sums struct {
	before int64   // before the oldest charge
	after  []int64 // after each charge; a ring as the times are
}

// Bounds of what a refund may have to look through, in both twins. A refund of an older
// charge is left out, so that no refund takes long.
const (
	// MaxBehind is how far from the new end of the log a charge is found.
	MaxBehind = 10_000

	// MaxShifted is the same for a charge that costs more than one event: its refund
	// changes the sums of all charges after it.
	MaxShifted = 200
)

// Len is the number of charges.
func (l *Log) Len() int { return l.size }

// At is the time of charge i, 0 being the oldest.
func (l *Log) At(i int) int64 { return l.times[l.place(i)] }

// place is where charge i stands in the ring.
func (l *Log) place(i int) int {
	if i += l.head; i >= len(l.times) {
		i -= len(l.times)
	}
	return i
}

// Newest is the time of the latest charge, 0 if there is none.
func (l *Log) Newest() int64 {
	if l.size == 0 {
		return 0
	}
	return l.At(l.size - 1)
}

// after is the sum after the first i charges.
func (l *Log) after(i int) int64 {
	switch {
	case l.sums == nil:
		return 0
	case i == 0:
		return l.sums.before
	}
	return l.sums.after[l.place(i-1)]
}

// Events is how many events the charges from i to j count for, j not included.
func (l *Log) Events(i, j int) int64 { return int64(j-i) + l.after(j) - l.after(i) }

// Holding is the charge that holds event n, counted from 0 at the first event of charge i.
func (l *Log) Holding(i int, n int64) int {
	if l.sums == nil {
		return i + int(n)
	}
	return i + sort.Search(l.size-1-i, func(j int) bool { return l.Events(i, i+j+1) > n })
}

// Before is the number of charges earlier than t.
func (l *Log) Before(t int64) int {
	// Most requests find few expired charges, so look near the old end first.
	bound := 1
	for bound <= l.size && l.At(bound-1) < t {
		bound *= 2
	}
	return l.search(bound/2, min(bound-1, l.size), t)
}

// recent is Before for a time near the new end: it looks there first, and no further
// back than MaxBehind charges and one.
func (l *Log) recent(t int64) int {
	low, high := max(0, l.size-MaxBehind-1), l.size
	for step := 1; l.size-step > low; step *= 2 {
		if i := l.size - step; l.At(i) < t {
			low = i + 1
			break
		} else {
			high = i
		}
	}
	return l.search(low, high, t)
}

// search is Before where the answer is known to be from low to high.
func (l *Log) search(low, high int, t int64) int {
	return low + sort.Search(high-low, func(i int) bool { return l.At(low+i) >= t })
}

// Append adds a charge that is not earlier than the newest.
func (l *Log) Append(t, cost int64) {
	if cost > 1 && l.sums == nil {
		l.sums = &sums{after: make([]int64, len(l.times))}
	}
	if l.size == len(l.times) {
		l.resize(l.size + l.size/4 + 1)
	}
	sum := l.after(l.size) + cost - 1
	i := l.place(l.size)
	l.times[i] = t
	if l.sums != nil {
		l.sums.after[i] = sum
	}
	l.size++
}

// Remove takes n events off the charges of one time, or all that there are, unless more
// charges than the bounds allow came after them.
func (l *Log) Remove(t, n int64) {
	first, behind := l.recent(t), l.recent(t+1)
	if first == behind || l.size-first > MaxBehind {
		return
	}
	// So many charges go, and the sums after them fall by so much.
	gone, fall := behind-first, l.after(behind)-l.after(first)
	switch events := l.Events(first, behind); {
	case fall == 0:
		gone = int(min(n, events))
	case l.size-first > MaxShifted:
		return
	case n < events: // one charge is left of them, the last
		gone--
		fall = n - int64(gone)
	}
	for i := first + gone; i < l.size; i++ {
		to, from := l.place(i-gone), l.place(i)
		l.times[to] = l.times[from]
		if l.sums != nil {
			l.sums.after[to] = l.sums.after[from] - fall
		}
	}
	l.shrink(l.size - gone)
}

// Forget drops the n oldest charges.
func (l *Log) Forget(n int) {
	if n == 0 {
		return
	}
	if l.sums != nil {
		if l.sums.before = l.after(n); l.sums.before == l.after(l.size) {
			l.sums = nil // what is left are charges of one event
		}
	}
	l.head = l.place(n)
	l.shrink(l.size - n)
}

// ForgetEvents drops the n oldest events, of which the last may be a part of a charge.
func (l *Log) ForgetEvents(n int64) {
	i := l.Holding(0, n)
	part := n - l.Events(0, i)
	l.Forget(i)
	if part > 0 {
		l.sums.before += part
	}
}

// shrink sets how many charges there are, and frees the room of the others once most of
// the room is idle.
func (l *Log) shrink(size int) {
	if l.size = size; size == 0 {
		l.sums = nil
	}
	if size < len(l.times)/2 {
		l.resize(size)
	}
}

func (l *Log) resize(capacity int) {
	l.times, l.sums, l.head = l.moved(l.times, capacity), l.sums.moved(l, capacity), 0
}

// moved copies a ring into one with the oldest charge in front.
func (l *Log) moved(ring []int64, capacity int) []int64 {
	to := make([]int64, capacity)
	n := copy(to, ring[l.head:min(l.head+l.size, len(ring))])
	copy(to[n:], ring[:l.size-n])
	return to
}

func (s *sums) moved(l *Log, capacity int) *sums {
	if s == nil {
		return nil
	}
	return &sums{s.before, l.moved(s.after, capacity)}
}

// Clone is a copy that shares nothing.
func (l *Log) Clone() *Log {
	c := *l
	c.times = slices.Clone(l.times)
	if l.sums != nil {
		c.sums = &sums{l.sums.before, slices.Clone(l.sums.after)}
	}
	return &c
}
