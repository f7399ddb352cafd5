package algorithms

import (
	"slices"
	"sort"
)

// Log is what a [Recorder] remembers of one key: its charges, oldest first, each with its
// time and the number of events that it counts for. It is a ring that grows with its
// contents, by a quarter at a time, whatever the limit is. The zero Log is a key never seen.
type Log struct {
	times []int64
	head  int // index of the oldest charge
	size  int
	sums  *sums // nil while each charge counts for one event
}

// sums are running sums of the events that charges count for beyond one each. The number of
// events in any part of the log is then its number of charges plus the difference of two
// sums. A charge of one event does not change the sum.
type sums struct {
	before int64   // before the oldest charge
	after  []int64 // after each charge; a ring like Log.times
}

// Bounds of the search for a charge that is refunded, in Go and in Lua. The refund of an
// older charge is left out, so that no refund takes long.
const (
	// MaxBehind is how many charges from the new end of the log are searched.
	MaxBehind = 10_000

	// MaxShifted is the bound for charges of more than one event, because their refund
	// changes the sums of all charges behind them.
	MaxShifted = 200
)

// Len returns the number of charges.
func (l *Log) Len() int { return l.size }

// At returns the time of charge i. Charge 0 is the oldest.
func (l *Log) At(i int) int64 { return l.times[l.position(i)] }

// position returns the index of charge i in the ring.
func (l *Log) position(i int) int {
	if i += l.head; i >= len(l.times) {
		i -= len(l.times)
	}
	return i
}

// Newest returns the time of the newest charge, or 0 if there is none.
func (l *Log) Newest() int64 {
	if l.size == 0 {
		return 0
	}
	return l.At(l.size - 1)
}

// after returns the sum after the first i charges.
func (l *Log) after(i int) int64 {
	switch {
	case l.sums == nil:
		return 0
	case i == 0:
		return l.sums.before
	}
	return l.sums.after[l.position(i-1)]
}

// Events returns how many events the charges from i up to, but not including, j count for.
func (l *Log) Events(i, j int) int64 { return int64(j-i) + l.after(j) - l.after(i) }

// Holding returns the charge that contains event n. The first event of charge i is event 0.
func (l *Log) Holding(i int, n int64) int {
	if l.sums == nil {
		return i + int(n)
	}
	return i + sort.Search(l.size-1-i, func(j int) bool { return l.Events(i, i+j+1) > n })
}

// Before returns the number of charges earlier than t.
func (l *Log) Before(t int64) int {
	return sort.Search(l.size, func(i int) bool { return l.At(i) >= t })
}

// Append adds a charge, which must not be earlier than the newest one.
func (l *Log) Append(t, cost int64) {
	if cost > 1 && l.sums == nil {
		l.sums = &sums{after: make([]int64, len(l.times))}
	}
	if l.size == len(l.times) {
		l.resize(l.size + l.size/4 + 1)
	}
	sum := l.after(l.size) + cost - 1
	i := l.position(l.size)
	l.times[i] = t
	if l.sums != nil {
		l.sums.after[i] = sum
	}
	l.size++
}

// Remove takes n events off the charges at time t, or all their events if they are fewer. It
// does nothing if more charges came after them than the bounds above allow.
func (l *Log) Remove(t, n int64) {
	first, behind := l.Before(t), l.Before(t+1)
	if first == behind || l.size-first > MaxBehind {
		return
	}
	// gone charges are removed, and the sums after them fall by fall.
	gone, fall := behind-first, l.after(behind)-l.after(first)
	switch events := l.Events(first, behind); {
	case fall == 0:
		gone = int(min(n, events))
	case l.size-first > MaxShifted:
		return
	case n < events: // the last of the charges stays, with what is left
		gone--
		fall = n - int64(gone)
	}
	for i := first + gone; i < l.size; i++ {
		to, from := l.position(i-gone), l.position(i)
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
			l.sums = nil // only charges of one event are left
		}
	}
	l.head = l.position(n)
	l.shrink(l.size - n)
}

// ForgetEvents drops the n oldest events. A part of the charge that contains
// the last of them may stay.
func (l *Log) ForgetEvents(n int64) {
	i := l.Holding(0, n)
	part := n - l.Events(0, i)
	l.Forget(i)
	if part > 0 {
		l.sums.before += part
	}
}

// shrink sets the number of charges, and frees memory once less than half of it is used.
func (l *Log) shrink(size int) {
	if l.size = size; size == 0 {
		l.sums = nil
	}
	if size < len(l.times)/2 {
		l.resize(size)
	}
}

// resize moves the rings, with the oldest charge in front.
func (l *Log) resize(capacity int) {
	moved := func(ring []int64) []int64 {
		to := make([]int64, capacity)
		n := copy(to, ring[l.head:min(l.head+l.size, len(ring))])
		copy(to[n:], ring[:l.size-n])
		return to
	}
	if l.sums != nil {
		l.sums.after = moved(l.sums.after)
	}
	l.times, l.head = moved(l.times), 0
}

// Clone returns a copy that shares no memory with the original.
func (l *Log) Clone() *Log {
	c := *l
	c.times = slices.Clone(l.times)
	if l.sums != nil {
		c.sums = &sums{l.sums.before, slices.Clone(l.sums.after)}
	}
	return &c
}
