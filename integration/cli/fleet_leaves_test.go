package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestFleetIsLeft: an instance that has ended has left what it counted, and has no other config. Each has more zones than
// a report has lists of keys.
func TestFleetIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var zones strings.Builder
	for i := range 20 {
		fmt.Fprintf(&zones, "zone z%d {\nevents 1000\nwindow 1h\n}\n", i)
	}
	pair := harness.StartPair(t, harness.Caddyfile("", "rate_limit {\n"+zones.String()+harness.Redis(server.Addr())+"\n}\nrespond ok"))
	client := harness.NewClient(t, "")
	for range 3 {
		pair[0].Get(client, "/")
		pair[1].Get(client, "/")
	}
	zonesOf := func() string {
		output, err := pair[0].RateLimit("zones", "--fleet")
		if err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return output
	}
	patient.Until(t, "both to be counted", func() bool { return strings.Count(zonesOf(), " 6 ") == 20 })
	pair[1].Stop()
	patient.Until(t, "the second to have left", func() bool { return strings.Contains(zonesOf(), "has left; its counts") })
	if output := zonesOf(); strings.Count(output, " 6 ") != 20 || strings.Contains(output, "another config") || strings.Contains(output, "no room") {
		t.Errorf("after that:\n%s", output)
	}
}
