package zone

import (
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Copy returns a zone that decides like this one, and has counters of its own.
func (z *Zone) Copy() (*Zone, error) { return z.With(z.Limit) }

// With returns a copy of the zone that has another limit of its own. Plans keep what they take from the zone's own.
func (z *Zone) With(l config.Limit) (*Zone, error) {
	c := z.Zone
	c.Limit = l
	return New(&c, z.Place, new(stats.Counters))
}
