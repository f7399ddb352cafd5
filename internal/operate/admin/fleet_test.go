package admin

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
)

// TestLastReport: when its store is closed, no config of an instance runs any more. It still reports what it has counted.
func TestLastReport(t *testing.T) {
	r := &reporter{last: fleet.Encode(&fleet.Report{
		Name: "x", Now: time.Now(), Zones: []fleet.Zone{{Name: "z", ZoneCounts: adminapi.ZoneCounts{Totals: map[string]uint64{"allowed": 7}}}},
	})}
	read, err := fleet.Decode(r.write())
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Zones) != 1 || read.Zones[0].Totals["allowed"] != 7 || read.Now.IsZero() {
		t.Errorf("%+v", read)
	}
}
