package caddyratelimit

import (
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of a histogram's buckets: two or three a decade, from what
// memory takes to what nobody should wait for.
var bounds = [...]time.Duration{
	time.Microsecond, 2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond,
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second,
}

// firstLatency is the first bound that matters for answers of a server.
const firstLatency = 5

// histogram counts durations without a lock: a reader may see one that is still being
// added in the sum and not in a bucket.
type histogram struct {
	counts [len(bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// read returns the histogram as Prometheus wants it: how many there are, their sum in
// seconds, and how many are at most each bound, from the first bound that matters on.
func (h *histogram) read(first int) (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(bounds)-first)
	for i := range h.counts {
		count += h.counts[i].Load()
		if i >= first && i < len(bounds) {
			buckets[bounds[i].Seconds()] = count
		}
	}
	return count, time.Duration(h.sum.Load()).Seconds(), buckets
}
