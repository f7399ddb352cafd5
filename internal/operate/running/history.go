package running

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Began is when this process began.
var Began = time.Now()

// Sample notes now and then what zones and stores have counted, for pages that are opened later. It returns when ctx is done.
func (c *Config) Sample(ctx context.Context) {
	ticker := time.NewTicker(stats.HistoryStep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.sample()
		}
	}
}

// sample notes what has been counted by now.
func (c *Config) sample() {
	now := max(0, int64(time.Since(Began)/stats.HistoryStep)) // a test has a clock of its own
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.handlers {
		h.Store.Store.Lately.Sample(now, &h.Store.Store.Latency)
		for _, z := range h.Zones { // of several handlers with the same zone, the first one notes something
			z.Stats.History.Sample(now, z.Stats.Totals())
		}
	}
}

// History has what a zone has counted in each of several steps of time, one after the other.
type History struct {
	End      time.Time `json:"end"`  // of the last step
	Step     float64   `json:"step"` // in seconds
	Requests []uint32  `json:"requests"`
	Refused  []uint32  `json:"refused"` // or would have been by a dry run
}

// History returns what the zone has counted in the last minutes, or nil if that is nothing.
func (z *Zone) History() *History {
	parts, newest := z.Stats.History.Read()
	if parts == nil {
		return nil
	}
	h := &History{End: Began.Add(time.Duration(newest) * stats.HistoryStep), Step: stats.HistoryStep.Seconds()}
	for _, p := range parts {
		h.Requests, h.Refused = append(h.Requests, p.Requests), append(h.Refused, p.Refused)
	}
	return h
}
