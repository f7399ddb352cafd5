package stats

import (
	"sync/atomic"
	"time"
)

// Bounds are the upper bounds of a histogram's buckets: two or three a decade, from what
// memory takes to what nobody should wait for.
var Bounds = [...]time.Duration{
	time.Microsecond, 2 * time.Microsecond, 5 * time.Microsecond, 10 * time.Microsecond, 20 * time.Microsecond,
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second,
}

// FirstServerBound is the first bound that matters for answers of a server.
const FirstServerBound = 5

// Histogram counts durations without a lock: a reader may see one that is still being
// added in the sum and not in a bucket.
type Histogram struct {
	counts [len(Bounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(Bounds) && d > Bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// Read returns the histogram as Prometheus wants it: how many there are, their sum in
// seconds, and how many are at most each bound, from the first bound that matters on.
func (h *Histogram) Read(first int) (count uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(Bounds)-first)
	for i := range h.counts {
		count += h.counts[i].Load()
		if i >= first && i < len(Bounds) {
			buckets[Bounds[i].Seconds()] = count
		}
	}
	return count, time.Duration(h.sum.Load()).Seconds(), buckets
}

// Quantile is the upper bound of the bucket in which that share of the durations ends;
// the last bound for those beyond it.
func (h *Histogram) Quantile(share float64) time.Duration {
	var counts [len(Bounds) + 1]uint64
	var all uint64
	for i := range counts {
		counts[i] = h.counts[i].Load()
		all += counts[i]
	}
	var below uint64
	for i, bound := range Bounds {
		if below += counts[i]; float64(below) >= share*float64(all) {
			return bound
		}
	}
	return Bounds[len(Bounds)-1]
}
