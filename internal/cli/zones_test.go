package cli

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestZoneCosts: the details of a zone have the results of its responses and the sum of their costs, added up
// over a fleet.
func TestZoneCosts(t *testing.T) {
	zone := func(read, unknown, sum uint64) []adminapi.Zone {
		return []adminapi.Zone{{Name: "tokens", ZoneCosts: adminapi.ZoneCosts{
			Costs: map[string]uint64{"read": read, "unknown": unknown, "broken_off": 0}, CostSum: sum,
		}}}
	}
	sums := sumZones([]answer[[]adminapi.Zone]{{value: zone(3, 0, 500)}, {value: zone(4, 2, 90)}})
	rows := zoneDetails(&sums[0].Zone)
	if got, want := fmt.Sprint(rows[len(rows)-2:]), "[[costs 7 read, 2 unknown] [cost sum 590]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
