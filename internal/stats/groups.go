package stats

import (
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Groups counts the requests of a zone by the value of its option group while somebody looks.
type Groups struct{ onDemand[*groups] }

type groups struct {
	*topk.Groups
	by string
}

// Look returns the counts by a placeholder. It begins to count if nobody has looked for long, or if a config before had another
// placeholder.
func (g *Groups) Look(by string) *topk.Groups {
	return g.look(func() *groups { return &groups{topk.NewGroups(TopSpan), by} }, func(known *groups) bool { return known.by == by }).Groups
}

// Counts reports whether requests are counted by a placeholder.
func (g *Groups) Counts(by string) bool {
	known := g.counting.Load()
	return known != nil && (*known).by == by
}

// Add counts a request by the value of a placeholder, if requests are counted by it.
func (g *Groups) Add(by, value, key string, o outcome.Outcome) {
	if known := g.counting.Load(); known != nil && (*known).by == by {
		(*known).Add(value, key, kindOf(o) != topk.Requests)
	}
}
