package zone

import "sync/atomic"

// Misses counts requests that have come to a zone and have not met it, up to a bound. Then it only reads a number. The zero
// Misses is ready to use, from several goroutines at once.
type Misses struct{ n atomic.Uint32 }

const maxMisses = 1000

// Note notes a request that has not met the zone.
func (m *Misses) Note() {
	if m.n.Load() < maxMisses {
		m.n.Add(1)
	}
}

// Read returns how many requests have not met the zone.
func (m *Misses) Read() uint64 { return uint64(m.n.Load()) }
