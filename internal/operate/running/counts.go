package running

import (
	"context"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// top returns up to n keys: without any refusals, none if it is by these.
func (z *Zone) top(n int, by topk.Kind) adminapi.Top {
	return z.frequent(z.Stats.Keys, n, by, func(e *topk.Entry, k *adminapi.KeyCount) {
		k.KeyText, k.DryRun = peek.KeyText(z.Template, e.Key, e.Length), z.MayTry(e.Key, e.Length > len(e.Key))
	})
}

// TopNetworks returns up to n networks with the most requests. It begins to count them, if that is not done yet.
func (z *Zone) TopNetworks(n int) adminapi.Top {
	counts := z.Stats.Networks.Look(stats.TopSpan, z.Template.Address)
	return z.frequent(counts, n, topk.Requests, func(e *topk.Entry, k *adminapi.KeyCount) { k.Key = e.Key })
}

func (z *Zone) frequent(counts *topk.Recent, n int, by topk.Kind, name func(*topk.Entry, *adminapi.KeyCount)) adminapi.Top {
	entries, since := counts.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: make([]adminapi.KeyCount, len(entries))}
	for i, e := range entries {
		answer.Keys[i] = adminapi.KeyCount{Plan: e.Plan, Requests: e.Counts[topk.Requests], Refused: e.Counts[topk.Refused]}
		name(&e, &answer.Keys[i])
	}
	return answer
}

// Top returns up to n keys of this instance, or of those of a view. Then it adds up lists of the most frequent keys: one that is
// frequent in the sum may have a low place in each of them.
func (z *Zone) Top(view *fleet.View, n int, by topk.Kind) adminapi.Top {
	if view == nil {
		return z.top(n, by)
	}
	sum, other := z.top(max(listed, n), by), z.top(max(listed, n), 1-by)
	lists := [][]adminapi.KeyCount{slices.Concat(sum.Keys, other.Keys)}
	for _, told := range view.Of(z.Name) {
		lists = append(lists, slices.Concat(told.Tops[:]...))
		if sum.Since.IsZero() || !told.Since.IsZero() && told.Since.Before(sum.Since) {
			sum.Since = told.Since
		}
	}
	sum.Keys = fleet.Merge(lists, by == topk.Refused, n)
	for i := range sum.Keys {
		sum.Keys[i].KeyText = z.Split(sum.Keys[i].KeyText)
	}
	return sum
}

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
