package zone

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Count counts a request: its key, its plan, its outcome, how long its decision took, and its group while somebody looks at groups.
func (z *Zone) Count(r *placeholder.Request, key, plan string, o outcome.Outcome, took time.Duration) {
	z.Stats.Add(key, plan, o, took)
	if z.GroupTemplate != nil && z.Stats.Groups.Counts(z.Group) {
		value, _ := z.GroupTemplate.Expand(r)
		z.Stats.Groups.Add(z.Group, value, key, o)
	}
}
