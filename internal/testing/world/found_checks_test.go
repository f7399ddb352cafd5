package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Worlds in which checks have claimed more than what is promised.

// TestChecksKnowWhoHasDecided: a request waited for a zone, and an instance decided its next try alone. It pays nothing in the zone
// that had charged its first one.
func TestChecksKnowWhoHasDecided(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true,
		Zones: []Zone{
			{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: 800 * time.Millisecond}, OnError: "local", MaxWait: time.Second},
			{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}, DryRun: true},
		},
		Events: []Event{
			{At: time.Millisecond, Kind: Request, Cost: 1},
			{At: 1001 * time.Microsecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 801 * time.Millisecond, Kind: Failover, Instance: -1, For: time.Millisecond},
		},
	})
}

// TestChecksKnowTheQueueOfALimit: a reload gave a zone another rate, which has a queue of its own. Requests that wait in the one
// before may leave later.
func TestChecksKnowTheQueueOfALimit(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 4, Window: 25 * time.Millisecond, Mode: "queue"}}},
		Events: []Event{
			{Kind: Request, Zone: -1, Cost: 1},
			{At: time.Millisecond, Kind: Request, Cost: 1},
			{At: 2 * time.Millisecond, Kind: Reload, Cost: 7},
			{At: 3 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 4 * time.Millisecond, Kind: Request, Cost: 1, For: time.Millisecond},
			{At: 5 * time.Millisecond, Kind: Request, Cost: 1},
		},
	})
}

// TestChecksKnowWhoCameFirst: Redis decided two requests in the same microsecond, under limits that count together. The one that says
// that less is used came first.
func TestChecksKnowWhoCameFirst(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true, Work: 3769210,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 2, Window: time.Millisecond}, Paying: 1, Enforced: 19.72269940657894, Costs: Costs{Asks: true}}},
		Events: []Event{
			{Kind: Flood, Cost: 113},
			{At: 600 * time.Millisecond, Kind: Request, Zone: -1},
			{At: 600001 * time.Microsecond, Kind: Request, Zone: -1, Sort: "paying"},
			{At: 610001 * time.Microsecond, Kind: Request, Zone: -1},
		},
	})
}

// TestChecksKnowOfABanThatIsOver: a request got no answer in time, and Redis banned its key when it came. Nobody asked before that ban
// was over, so refusals count from one again.
func TestChecksKnowOfABanThatIsOver(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Sentinels, Instances: 1,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 3, Window: 7 * time.Second}, BanAfter: 3, BanFor: time.Second}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: time.Microsecond, Kind: Take, Cost: 1},
			{At: 1001 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1002 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1003 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 11003 * time.Microsecond, Kind: Delay, For: time.Microsecond, Surely: true},
			{At: 11004 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1400999 * time.Microsecond, Kind: Take, Cost: 1},
		},
	})
}

// TestChecksKnowOfTwoNewMasters: the master that an instance has just gone to became a replica too. So soon it does not leave again.
func TestChecksKnowOfTwoNewMasters(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}}},
		Events: []Event{
			{At: time.Millisecond, Kind: Demote},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 10 * time.Millisecond, Kind: Demote},
			{At: 80 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 140 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}

// TestChecksKnowLateRefunds: two requests gave their turns in a queue back, and Redis learned of the first one after the second one,
// when it was the last.
func TestChecksKnowLateRefunds(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true, Addresses: 4,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 3, Window: 500 * time.Millisecond, Mode: "queue"}}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: time.Millisecond, Kind: Request, Zone: -1, Cost: 1, For: 1},
			{At: 1001 * time.Microsecond, Kind: Take, Cost: 1, Delta: -1, After: 5 * time.Millisecond},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1, Returns: true},
			{At: 3 * time.Millisecond, Kind: Take, Cost: 1, Returns: true},
			{At: 4 * time.Millisecond, Kind: Take, Cost: 1, Returns: true},
			{At: 5 * time.Millisecond, Kind: Reload, Cost: 1},
			{At: 6 * time.Millisecond, Kind: Request, Cost: 1},
		},
	})
}

// TestChecksKnowWhoPaysLate: a request took the turn of one that had left, and paid late costs in that turn.
func TestChecksKnowWhoPaysLate(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: "Cluster", Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 10, Window: 7 * time.Second, Mode: "queue"}}},
		Events: []Event{
			{At: time.Millisecond, Kind: Take, Cost: 1},
			{At: 1001 * time.Microsecond, Kind: Request, Zone: -1, Cost: 2},
			{At: 1002 * time.Microsecond, Kind: Take, Cost: 2},
			{At: 1003 * time.Microsecond, Kind: Request, Zone: -1, Cost: 1, For: 1},
			{At: 599999500, Kind: Request, Zone: -1, Cost: 1, Delta: 3},
			{At: 707342238, Kind: Request, Cost: 1},
			{At: 951225726, Kind: Request, Zone: -1, Cost: 1},
			{At: 999999500, Kind: Request, Cost: 1},
		},
	})
}

// TestSlotsMoveInOrder: a slot was to move to another node while that was away. Both nodes agree about it in the end.
func TestSlotsMoveInOrder(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: "Cluster", Instances: 1,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}}},
		Events: []Event{
			{At: time.Millisecond, Kind: Failover, Instance: -1, For: 42900 * time.Microsecond},
			{At: 2 * time.Millisecond, Kind: Move, For: 10 * time.Millisecond},
			{At: 100 * time.Millisecond, Kind: Move},
		},
	})
}

// TestChecksKnowWhatCameBack: a slot moved away and back, and a failover lost that it had come back, with its charge.
func TestChecksKnowWhatCameBack(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: "Cluster", Instances: 1,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: 500 * time.Millisecond}, Overrides: true}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: 100 * time.Millisecond, Kind: Move},
			{At: 200 * time.Millisecond, Kind: Move},
			{At: 300 * time.Millisecond, Kind: Promote, After: 100 * time.Millisecond},
			{At: 400 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}

// TestChecksKnowWhenSomethingIsGivenBack: a late cost was more than a log takes above a small limit, because a charge had not been given
// back yet. The check saw only what was left in the end.
func TestChecksKnowWhenSomethingIsGivenBack(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 14, Window: time.Hour}, Paying: 5}},
		Events: []Event{
			{Kind: Request, Zone: -1, Sort: paying, Cost: 1, Delta: 3, After: 5 * time.Millisecond},
			{At: time.Millisecond, Kind: Request, Cost: 1, Delta: 2},
			{At: 2 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 3 * time.Millisecond, Kind: Take, Cost: 1, Delta: -1, After: 5 * time.Millisecond},
			{At: 4 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 5 * time.Millisecond, Kind: Request, Cost: 1},
		},
	})
}

// TestChecksKnowWhoWaitsAlone: while Redis stood still, a client left that its instance had made wait for a turn. It had met the share of
// the instance, and the check wanted all of the limit.
func TestChecksKnowWhoWaitsAlone(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 2, Whole: true, Addresses: 6,
		Zones: []Zone{{
			Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 1, Window: 20 * time.Millisecond, Mode: "queue"}, Overrides: true, OnError: "local",
		}},
		Events: []Event{
			{Kind: Network, Sort: "limited", Cost: 4},
			{At: 1100 * time.Millisecond, Kind: Freeze, For: 100 * time.Millisecond},
			{At: 1101 * time.Millisecond, Kind: Request, Instance: 1, Zone: -1, Cost: 1},
			{At: 1101999 * time.Microsecond, Kind: Request, Instance: 1, Cost: 1, For: 1},
		},
	})
}
