package world

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// expire has the limits of a generation end when they are to, as an instance does that runs it.
func (w *world) expire(g *whole) {
	for i, z := range g.zones {
		if of := &w.plan.Zones[i]; of.Then != "" && of.Ends > w.net.now() {
			w.net.at(of.Ends, uint64(i), func() { z.SetTime(time.Now()) })
		}
	}
}

// over reports whether a limit that ends has ended by a time, so that it refuses nobody any more.
func (z *Zone) over(at time.Duration) bool {
	return z.Then != "" && z.Then != zone.ThenKeep && at > z.Ends
}
