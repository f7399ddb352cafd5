package admin

import (
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
)

func showZones(c *adminCall) (any, error) {
	counts := running.KeyCounts(running.Stores()...)
	return each(c.zones(), func(z *running.Zone) adminapi.Zone {
		answer := z.Show(counts)
		add(&answer, c.view)
		return answer
	}), nil
}

// add adds the counts of others to those of a zone, even of those that define the zone in another way.
func add(z *adminapi.Zone, view *fleet.View) {
	for _, told := range view.Of(z.Name) {
		z.Add(&told.ZoneCounts)
	}
}
