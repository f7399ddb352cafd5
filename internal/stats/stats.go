// Package stats counts the outcomes of a zone's requests, and measures latencies.
package stats

import (
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Counters counts the outcomes of a zone's requests. It belongs to the state of the zone, which
// configs share, so a reload does not reset it. It holds nothing that a client can make grow.
type Counters struct {
	outcomes  [outcome.Count]atomic.Uint64
	NearLimit atomic.Uint64 // requests that have passed, and have left little of their limit
	Latency   Histogram     // of decisions, including the time that requests are held
	Keys      *topk.Recent  // nil if frequent keys are not counted
	Networks  topk.Networks
	Bans      atomic.Uint64 // that have begun
	Costs     Costs         // of responses, in zones that read them in bodies
	History   History
}

// TopSpan is the span over which frequent keys are counted: the counts cover at least this much
// time, and at most twice as much.
const TopSpan = 5 * time.Minute

// Totals returns the number of requests so far, by outcome.
func (t *Counters) Totals() (n [outcome.Count]uint64) {
	for o := range n {
		n[o] = t.outcomes[o].Load()
	}
	return n
}

// Add counts a request, its plan, what it cost if that is to be known of a refused one, or 0, and how long its decision took,
// unless that is [Untimed].
func (t *Counters) Add(key, plan string, o outcome.Outcome, cost int64, latency time.Duration) {
	t.outcomes[o].Add(1)
	kind := topk.Requests
	if o.WouldRefuse() {
		kind = topk.Refused
	}
	if t.Keys != nil {
		t.Keys.Add(key, plan, kind, cost)
	}
	t.Networks.Add(key, kind)
	if latency >= 0 {
		t.Latency.Observe(latency)
	}
}

// Untimed is the latency of a decision that was not measured.
const Untimed = time.Duration(-1)
