package algorithms

import (
	"slices"
	"sort"
)

// Log is the memory of a [Recorder]: the times of a key's events, oldest first, in a
// ring that grows with what it holds, a quarter at a time, whatever the limit is. The
// zero Log is a key never seen.
type Log struct {
	ring []int64
	head int // index of the oldest
	size int
}

// Len is the number of events.
func (l *Log) Len() int { return l.size }

// At is the time of event i, 0 being the oldest.
func (l *Log) At(i int) int64 { return l.ring[l.place(i)] }

// place is where event i stands in the ring.
func (l *Log) place(i int) int {
	if i += l.head; i >= len(l.ring) {
		i -= len(l.ring)
	}
	return i
}

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
		l.resize(l.size + l.size/4 + 1)
	}
	l.ring[l.place(l.size)] = t
	l.size++
}

// Remove drops up to n events of one time.
func (l *Log) Remove(t, n int64) {
	first, behind := l.Before(t), l.Before(t+1)
	gone := int(min(n, int64(behind-first)))
	if gone == 0 {
		return
	}
	for i := behind; i < l.size; i++ {
		l.ring[l.place(i-gone)] = l.At(i)
	}
	l.size -= gone
	if l.size < len(l.ring)/2 {
		l.resize(l.size)
	}
}

// Forget drops the n oldest events, and the room they took once most of it is idle.
func (l *Log) Forget(n int) {
	if n == 0 {
		return
	}
	l.head = l.place(n)
	l.size -= n
	if l.size < len(l.ring)/2 {
		l.resize(l.size)
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
