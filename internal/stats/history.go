package stats

import (
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

const (
	// HistoryStep is the time between two samples of a [History].
	HistoryStep = 5 * time.Second

	// HistoryParts is how many samples are kept: those of the last 15 minutes.
	HistoryParts = 180
)

// History knows what a zone has counted in the last 15 minutes, in parts of [HistoryStep]. Somebody else samples
// the counters, so that requests cost nothing more. It takes 2 kB.
type History struct {
	mu     sync.Mutex
	before Part               // what had been counted at the last sample
	parts  [HistoryParts]Part // by their numbers, in turn
	newest int64              // the number of the last sample
}

// Part is what was counted between two samples. As a difference it is right even after an overflow.
type Part struct {
	Requests, Refused uint32 // Refused, or would have been without a dry run
}

func partOf(totals [outcome.Count]uint64) (p Part) {
	for o, n := range totals {
		p.Requests += uint32(n)
		if outcome.Outcome(o).WouldRefuse() {
			p.Refused += uint32(n)
		}
	}
	return p
}

// Sample notes what has been counted by now. Numbers of samples never decrease, and grow by one in a step. Two
// samples of the same number are one.
func (h *History) Sample(number int64, totals [outcome.Count]uint64) {
	now := partOf(totals)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest = max(h.newest, number-HistoryParts)
	for h.newest < number {
		h.newest++
		h.parts[h.newest%HistoryParts] = Part{}
	}
	p := &h.parts[number%HistoryParts]
	p.Requests += now.Requests - h.before.Requests
	p.Refused += now.Refused - h.before.Refused
	h.before = now
}

// Rate returns how many requests have come in a second, in the last minute, or since samples have the number 0.
func (h *History) Rate() float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, n := max(0, h.newest-minuteParts+1), uint64(0)
	for i := first; i <= h.newest; i++ {
		n += uint64(h.parts[i%HistoryParts].Requests)
	}
	return float64(n) / (float64(h.newest-first+1) * HistoryStep.Seconds())
}

// Read returns the samples from the first one that is not zero, none if all are, and the number of the last one.
func (h *History) Read() (parts []Part, newest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := max(0, h.newest-HistoryParts+1); n <= h.newest; n++ {
		if p := h.parts[n%HistoryParts]; len(parts) > 0 || p != (Part{}) {
			parts = append(parts, p)
		}
	}
	return parts, h.newest
}
