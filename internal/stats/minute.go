package stats

import (
	"sync"
	"time"
)

// Minute knows what a [Histogram] has counted within the last minute. Like a [History], somebody else samples it.
type Minute struct {
	mu     sync.Mutex
	past   [minuteParts]Durations // what had been counted by then, by the numbers of samples
	newest int64                  // the number of the last sample
}

const minuteParts = int64(time.Minute / HistoryStep)

// Sample notes what the histogram has counted by now. Numbers are those of [History.Sample].
func (m *Minute) Sample(number int64, of *Histogram) {
	now := of.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.newest = max(m.newest, number-minuteParts); m.newest < number; {
		m.newest++
		m.past[m.newest%minuteParts] = now
	}
}

// Read returns the durations of the last minute, to 5 seconds.
func (m *Minute) Read(of *Histogram) Durations {
	m.mu.Lock()
	before := m.past[(m.newest+1)%minuteParts]
	m.mu.Unlock()
	d := of.now()
	for i, n := range before.counts {
		d.counts[i] -= n
	}
	return d
}

// Durations are how many durations lie in each bucket of a histogram.
type Durations struct{ counts [len(bounds) + 1]uint64 }

// Count returns how many durations there are.
func (d *Durations) Count() (n uint64) {
	for _, in := range d.counts {
		n += in
	}
	return n
}

// Quantile estimates a quantile, such as 0.99, as if the durations of a bucket were spread evenly; 0
// without any. What is above the last bound counts as that.
func (d *Durations) Quantile(share float64) time.Duration {
	rank, lower := share*float64(d.Count()), time.Duration(0)
	if rank == 0 {
		return 0
	}
	for i, upper := range bounds {
		n := float64(d.counts[i])
		if rank <= n {
			return lower + time.Duration(float64(upper-lower)*rank/n)
		}
		rank, lower = rank-n, upper
	}
	return lower
}
