package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// What worlds have found of slots that are kept under several limits, and of waits of several costs.

// TestFoundAWaitOfAnotherCost: an instance that held parts of a limit refused a request for the sake of one before, which had cost
// less, and told it the wait of that one.
func TestFoundAWaitOfAnotherCost(t *testing.T) {
	p := &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 2, Window: 5 * time.Second}, Lend: 10 * time.Millisecond}},
		Events: []Event{
			{At: time.Second, Kind: Take, Cost: 1},
			{At: 1000001 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1000002 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1000003 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1100 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 1110 * time.Millisecond, Kind: Take, Cost: 2, Returns: true},
		},
	}
	for _, violation := range Check(Run(t, p)) {
		t.Error(violation)
	}
}
