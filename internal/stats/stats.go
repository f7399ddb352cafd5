// Package stats counts what becomes of the requests of a zone, and how long that takes.
package stats

import (
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Counters counts what becomes of a zone's requests. It lives as long as the zone's
// generation, so that reloads do not lose it, and holds nothing that a client can choose.
type Counters struct {
	outcomes [outcome.Count]atomic.Uint64
	Latency  Histogram // to decide, waits included
	Keys     *topk.Recent
}

// TopSpan is how far back the keys are known that come most often, and twice that at most.
const TopSpan = 5 * time.Minute

// Totals are the counts so far.
func (t *Counters) Totals() (n [outcome.Count]uint64) {
	for o := range n {
		n[o] = t.outcomes[o].Load()
	}
	return n
}

func (t *Counters) Add(key string, o outcome.Outcome, took time.Duration) {
	t.outcomes[o].Add(1)
	t.Keys.Add(key, o.Declined())
	if took >= 0 {
		t.Latency.Observe(took)
	}
}

// Untimed says that nobody wants to know how long it took.
const Untimed = time.Duration(-1)
