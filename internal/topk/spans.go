package topk

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// heldSpans is how many spans are kept: the current one and the one before, and those ten minutes earlier.
const heldSpans = 4

// spans has counts by spans of time, for as long as somebody looks. It may be used from several goroutines at once.
type spans struct {
	length time.Duration
	began  time.Time
	asked  atomic.Int64 // when somebody has looked last, since began

	mu   sync.RWMutex // requests hold it for reading
	held []*heldSpan  // the current one first
}

// heldSpan has the counts of a span of time.
type heldSpan struct {
	since  time.Time
	total  atomic.Uint64
	counts networkLevels
}

func (s *spans) begin(length time.Duration) {
	s.length, s.began = length, time.Now()
	s.held = []*heldSpan{{since: s.began}}
}

// add counts a request in the current span.
func (s *spans) add(in func(*networkLevels)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.held[0].total.Add(1)
	in(&s.held[0].counts)
}

// Rotate begins a new span if the current one is over. It reports false if nobody has looked for longer than all spans together,
// so that counting can end.
func (s *spans) Rotate(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.held[0].since) >= s.length {
		s.held = slices.Insert(s.held, 0, &heldSpan{since: now})
		s.held = s.held[:min(len(s.held), heldSpans)]
	}
	return now.Sub(s.began)-time.Duration(s.asked.Load()) < heldSpans*s.length
}

// look is what somebody sees who looks.
type look struct {
	now, before []*networkLevels // before is empty if not all of that time was counted
	total       uint64
	since       time.Time
}

func (s *spans) look() (v look) {
	s.asked.Store(int64(time.Since(s.began)))
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, held := range s.held {
		switch {
		case i < 2:
			v.now, v.since = append(v.now, &held.counts), held.since
			v.total += held.total.Load()
		case len(s.held) == heldSpans:
			v.before = append(v.before, &held.counts)
		}
	}
	return v
}

// leastOf returns how many requests are a share of all, at least 1.
func leastOf(share float64, total uint64) uint64 {
	return max(1, uint64(math.Ceil(share*float64(total))))
}
