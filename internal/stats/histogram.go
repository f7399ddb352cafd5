package stats

import (
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of a histogram's buckets: two or three per decade, from the time
// of a decision in memory to the longest timeouts.
var bounds = [...]time.Duration{
	time.Microsecond, 2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond,
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second,
}

// FirstServerBound is the index of the first bound that matters for the latency of a server.
const FirstServerBound = 5

// Histogram counts durations without a lock. A reader may see a duration in a bucket before it
// is part of the sum.
type Histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Observe adds a duration.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	if d != 0 { // as for all decisions in memory
		h.sum.Add(int64(d))
	}
}

// Read returns the histogram in the form that Prometheus expects: the number of durations, their
// sum in seconds, and how many are at most each bound, beginning with the bound of index first.
func (h *Histogram) Read(first int) (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(bounds)-first)
	for i := range h.counts {
		count += h.counts[i].Load()
		if i >= first && i < len(bounds) {
			buckets[bounds[i].Seconds()] = count
		}
	}
	return count, time.Duration(h.sum.Load()).Seconds(), buckets
}

// now returns what has been counted so far.
func (h *Histogram) now() (d Durations) {
	for i := range d.counts {
		d.counts[i] = h.counts[i].Load()
	}
	return d
}
