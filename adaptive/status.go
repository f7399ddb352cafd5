package adaptive

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// Running returns the limits of the configs that run, sorted by name.
func Running() []adminapi.Adaptive {
	all := []adminapi.Adaptive{}
	limits.Range(func(_, value any) bool {
		l := value.(*limit)
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.running); n > 0 {
			all = append(all, l.running[n-1].status())
		}
		return true
	})
	slices.SortFunc(all, func(a, b adminapi.Adaptive) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// status is what operators see of the limit.
func (h *Handler) status() adminapi.Adaptive {
	s := h.limit.gate.State()
	a := adminapi.Adaptive{
		Name: h.Name, Definition: h.definition(),
		Limit: s.Limit, Running: s.Running, Waiting: s.Waiting, Keys: s.Keys,
		Latency: s.Latency.Seconds(), Spread: s.Spread, Trend: trend(&s), Elasticity: s.Elasticity,
	}
	if !s.Since.IsZero() {
		since := s.Since.Truncate(time.Second)
		a.Since = &since
	}
	for i, c := range s.Classes {
		of := adminapi.AdaptiveClass{Class: h.names[min(i, len(h.names)-1)], Running: c.Running, Waiting: c.Waiting, Useful: c.Ends[gate.Useful].Count}
		for _, end := range c.Ends {
			of.SlotSeconds += end.Slots.Seconds()
		}
		a.Useful, a.Failed, a.Left = a.Useful+of.Useful, a.Failed+c.Ends[gate.Failed].Count, a.Left+c.Ends[gate.Left].Count
		a.UsefulSeconds += c.Ends[gate.Useful].Slots.Seconds()
		a.Refused += h.limit.refused[i].Load()
		if h.priority != nil {
			a.Classes = append(a.Classes, of)
		}
	}
	return a
}

// restsWithin is how far from its rest an elasticity may be for the limit to rest.
const restsWithin = 0.15

// trend says what the limit does.
func trend(s *gate.State) string {
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
