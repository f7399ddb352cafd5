package stats

import (
	"sync"
	"time"
)

// Minute knows what a [Histogram] has counted within the last minute, to 10 seconds. It reads the
// histogram now and then, so counting costs nothing more.
type Minute struct {
	of   *Histogram
	done chan struct{}

	mu   sync.Mutex
	past [minuteParts]Durations // what had been counted by then, in turn
	next int                    // index of the oldest
}

const minuteParts = 6

// Follow begins to read a histogram, until [Minute.Stop] is called.
func Follow(h *Histogram) *Minute {
	m := &Minute{of: h, done: make(chan struct{})}
	go m.run()
	return m
}

// Stop ends the reading. It must be called once.
func (m *Minute) Stop() { close(m.done) }

func (m *Minute) run() {
	ticker := time.NewTicker(time.Minute / minuteParts)
	defer ticker.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-ticker.C:
			m.mu.Lock()
			m.past[m.next] = m.of.now()
			m.next = (m.next + 1) % minuteParts
			m.mu.Unlock()
		}
	}
}

// Read returns the durations of the last minute.
func (m *Minute) Read() Durations {
	m.mu.Lock()
	before := m.past[m.next]
	m.mu.Unlock()
	d := m.of.now()
	d.sum -= before.sum
	for i, n := range before.counts {
		d.counts[i] -= n
	}
	return d
}

// Durations are how many durations lie in each bucket of a histogram, and their sum.
type Durations struct {
	counts [len(bounds) + 1]uint64
	sum    time.Duration
}

// Count returns how many durations there are.
func (d *Durations) Count() (n uint64) {
	for _, in := range d.counts {
		n += in
	}
	return n
}

// Mean returns the mean duration, 0 without any.
func (d *Durations) Mean() time.Duration { return d.sum / time.Duration(max(d.Count(), 1)) }

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
