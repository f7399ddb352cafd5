package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestChecksKnowWhoIsOnlyInADryRun: a machine was too busy to ask for a request. One zone was a dry run, and in the other one its network
// was exempt, so it passed.
func TestChecksKnowWhoIsOnlyInADryRun(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true, Addresses: 4, Work: 2641570,
		Zones: []Zone{
			{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}, DryRun: true, Costs: Costs{Asks: true}},
			{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}, Overrides: true, Costs: Costs{Asks: true}},
		},
		Events: []Event{
			{Kind: Network, Zone: 1, Sort: "exempt", Cost: 1},
			{At: 101 * time.Millisecond, Kind: Flood, Cost: 11},
			{At: 102 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 103 * time.Millisecond, Kind: Busy, After: 10 * time.Millisecond, For: 100 * time.Microsecond},
			{At: 103001 * time.Microsecond, Kind: Flood, Zone: 1, Cost: 160},
		},
	})
}

// TestFoundARefundInASlotThatMoves: a refund took the first charge out of a log, and was to write the ones behind it again. With the
// first one went the key, and while its slot moved, Redis let the script not write it again. All charges were lost.
func TestFoundARefundInASlotThatMoves(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 1, Whole: true,
		Zones: []Zone{{
			Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 7, Window: 500 * time.Millisecond},
			Body: true,
		}},
		Events: []Event{
			{Kind: Request, Cost: 3, Delta: -2, After: 100 * time.Millisecond},
			{At: time.Microsecond, Kind: Move, For: 900 * time.Millisecond},
			{At: 400999 * time.Microsecond, Kind: Request, Cost: 3, Delta: -2},
		},
	})
}

// TestFoundASlotGivenBackInASlotThatMoves: what held the last slot of a key gave it back. With it went the key, and while its slot of the
// Cluster moved, Redis let the script not look at it again: what gave it back got an error.
func TestFoundASlotGivenBackInASlotThatMoves(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 2, Lease: 10 * time.Second}}},
		Events: []Event{
			{Kind: Request, Cost: 1, After: 300 * time.Millisecond},
			{At: 10 * time.Millisecond, Kind: Move, For: 900 * time.Millisecond},
		},
	})
}

// TestFoundARefundAboveItsBooking: a request of a log was paid in part by what was charged ahead, and gave back more than that booking
// had. The rest stayed charged.
func TestFoundARefundAboveItsBooking(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 10, Window: time.Hour}, Lend: 10 * time.Millisecond}},
		Events: []Event{
			{Kind: Take},
			{At: time.Millisecond, Kind: Take},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 3 * time.Millisecond, Kind: Take, Cost: 3, Delta: -3},
		},
	})
}
