package cli

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestZoneCosts: the details of a zone have the results of its responses and the sum of their costs.
func TestZoneCosts(t *testing.T) {
	rows := zoneDetails(&adminapi.Zone{Name: "tokens", ZoneCounts: adminapi.ZoneCounts{
		Costs: map[string]uint64{"read": 7, "unknown": 2, "broken_off": 0}, CostSum: 590,
	}})
	if got, want := fmt.Sprint(rows[len(rows)-2:]), "[[costs 7 read, 2 unknown] [cost sum 590]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
