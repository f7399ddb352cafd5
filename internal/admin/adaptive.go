package admin

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// restsWithin is how far from its rest an elasticity may be for the limit to rest.
const restsWithin = 0.15

// adaptive returns the state of the zone's gate, or nil if the zone has none.
func adaptive(z *zone.Zone) *adminapi.Adaptive {
	if z.Gate == nil {
		return nil
	}
	s := z.Gate.State()
	ends := s.Ends()
	a := &adminapi.Adaptive{
		Limit: s.Limit, Running: s.Running, Waiting: s.Waiting, Keys: s.Keys, Latency: s.Latency.Seconds(), Spread: s.Spread, Trend: trend(s), Elasticity: s.Elasticity,
		Useful: ends[gate.Useful].Count, Failed: ends[gate.Failed].Count, Left: ends[gate.Left].Count, UsefulSeconds: ends[gate.Useful].Slots.Seconds(),
	}
	if !s.Since.IsZero() {
		since := s.Since.Truncate(time.Second)
		a.Since = &since
	}
	if z.Adaptive.Priority != nil {
		for i, c := range s.Classes {
			of := adminapi.AdaptiveClass{Class: z.Adaptive.ClassName(i), Running: c.Running, Waiting: c.Waiting, Useful: c.Ends[gate.Useful].Count}
			for _, end := range c.Ends {
				of.SlotSeconds += end.Slots.Seconds()
			}
			a.Classes = append(a.Classes, of)
		}
	}
	return a
}

// trend says what the limit does.
func trend(s gate.State) string {
	switch {
	case !s.Held:
		return "nothing waits"
	case s.Elasticity > gate.Rest+restsWithin:
		return "goes up"
	case s.Elasticity < gate.Rest-restsWithin:
		return "goes down"
	}
	return "rests"
}
