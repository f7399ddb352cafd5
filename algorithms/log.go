package algorithms

import (
	"slices"
	"sort"
)

// Log is the memory of a [Recorder]: the times of a key's events, oldest first, in a
// ring that grows with what it holds. The zero Log is a key never seen.
type Log struct {
	ring []int64 // capacity a power of two, or empty
	head int     // index of the oldest
	size int
}

// Len is the number of events.
func (l *Log) Len() int { return l.size }

// At is the time of event i, 0 being the oldest.
func (l *Log) At(i int) int64 { return l.ring[(l.head+i)&(len(l.ring)-1)] }

// Newest is the time of the latest event, 0 if there is none.
func (l *Log) Newest() int64 {
	if l.size == 0 {
		return 0
	}
	return l.At(l.size - 1)
}

// Before is the number of events earlier than t.
func (l *Log) Before(t int64) int {
	// Most requests find few expired events, so look near the old end first.
	bound := 1
	for bound <= l.size && l.At(bound-1) < t {
		bound *= 2
	}
	low := bound / 2
	return low + sort.Search(min(bound-1, l.size)-low, func(i int) bool { return l.At(low+i) >= t })
}

// Append adds an event that is not earlier than the newest.
func (l *Log) Append(t int64) {
	if l.size == len(l.ring) {
		l.resize(max(1, 2*l.size))
	}
	l.ring[(l.head+l.size)&(len(l.ring)-1)] = t
	l.size++
}

// Forget drops the n oldest events, and the room they took once most of it is idle.
func (l *Log) Forget(n int) {
	if n == 0 {
		return
	}
	l.head = (l.head + n) & (len(l.ring) - 1)
	l.size -= n
	if l.size <= len(l.ring)/4 {
		l.resize(len(l.ring) / 2)
	}
}

func (l *Log) resize(capacity int) {
	ring := make([]int64, capacity)
	for i := range l.size {
		ring[i] = l.At(i)
	}
	l.ring, l.head = ring, 0
}

// Clone is a copy that shares nothing.
func (l *Log) Clone() *Log {
	c := *l
	c.ring = slices.Clone(l.ring)
	return &c
}
