package caddyratelimit

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// count notes what became of a request in all its zones alike.
func (a *attempt) count(o outcome.Outcome, took time.Duration) {
	for i := range a.zones {
		a.note(i, o, took)
	}
}

// countDecisions notes what each zone has decided; passed is what became of those that
// passed. Dry runs charge whatever the others say.
func (a *attempt) countDecisions(passed outcome.Outcome, someRefused bool, took time.Duration) {
	for i, z := range a.zones {
		o, firm := passed, i < a.firm
		switch {
		case !a.decisions[i].Allowed && firm:
			o = z.Refuses(&a.decisions[i])
		case !a.decisions[i].Allowed:
			o = outcome.DryRun
		case someRefused && firm:
			o = outcome.NotCharged
		}
		a.note(i, o, took)
	}
}

// note takes note of what became of the request in one of its zones.
func (a *attempt) note(i int, o outcome.Outcome, took time.Duration) {
	a.zones[i].Stats.Add(a.checks[i].Key, o, took)
	feed.Publish(a.request, a.zones[i].Name, &a.checks[i], o, &a.decisions[i], nil)
}

// processStart is when the clock of decisions began.
var processStart = time.Now()

// clock is the time since the process began, which is cheaper to ask for than the time.
func (h *Handler) clock() time.Duration {
	if h.measures {
		return time.Since(processStart)
	}
	return 0
}

func (h *Handler) since(start time.Duration) time.Duration {
	if h.measures {
		return time.Since(processStart) - start
	}
	return stats.Untimed
}
