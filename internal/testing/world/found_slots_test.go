package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// What worlds have found of waits of several costs, of holds and slots, and of checks that were wrong.

// TestFoundAWaitOfAnotherCost: an instance that held parts of a limit refused a request for the sake of one before, which had cost
// less, and told it the wait of that one.
func TestFoundAWaitOfAnotherCost(t *testing.T) {
	holds(t, &Plan{
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
	})
}

// TestFoundARefundOfAHoldThatEnds: an instance had spent all of a hold, and took one of it back just before the hold ended. The next
// look at what to report came after that, and so all of the hold counted as spent.
func TestFoundARefundOfAHoldThatEnds(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Sentinels, Instances: 1,
		Zones: []Zone{{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 10, Window: time.Hour}, Lend: time.Second}},
		Events: []Event{
			{Kind: Take},
			{At: time.Second, Kind: Take},
			{At: 2 * time.Second, Kind: Take, Cost: 1},
			{At: 3 * time.Second, Kind: Take, Cost: 1},
			{At: 4 * time.Second, Kind: Take, Cost: 1},
			{At: 5 * time.Second, Kind: Take, Cost: 1, Delta: 2},
			{At: 6 * time.Second, Kind: Take, Cost: 1, Delta: -1, After: 800 * time.Millisecond},
		},
	})
}

// TestChecksKnowAnEarlierTry: a request waited for a zone, and Redis did not answer its next try. So it pays nothing in the zone that
// had charged its first one.
func TestChecksKnowAnEarlierTry(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Sentinels, Instances: 1, Whole: true,
		Zones: []Zone{
			{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 3, Window: 200 * time.Millisecond}, MaxWait: 400 * time.Millisecond},
			{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 4, Window: time.Millisecond}, DryRun: true},
		},
		Events: []Event{
			{At: time.Second, Kind: Take, Cost: 1},
			{At: 1000001 * time.Microsecond, Kind: Request, Zone: -1, Cost: 3, Delta: 1},
			{At: 1330 * time.Millisecond, Kind: LoseReplies, For: 200 * time.Microsecond, Surely: true},
		},
	})
}

// TestChecksKnowWhatOthersCharge: an instance remembered a refusal, and did not know that another one had charged a smaller cost since,
// which made the wait longer.
func TestChecksKnowWhatOthersCharge(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 2,
		Zones: []Zone{{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 5, Window: 12500 * time.Microsecond}}},
		Events: []Event{
			{At: 990 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 990001 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 990002 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 990003 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 991 * time.Millisecond, Kind: Take, Instance: 1, Cost: 2},
			{At: 992 * time.Millisecond, Kind: Take, Cost: 1},
			{At: time.Second, Kind: Take, Instance: 1, Cost: 2, Returns: true},
		},
	})
}

// TestClientsNameNewSlots: a client was refused from memory, because Redis did not answer in time, and came back with the same name for
// its slot. An instance gives back what Redis may have charged before, by its name, again and again for as long as a lease lasts.
// Requests have a new name then.
func TestClientsNameNewSlots(t *testing.T) {
	holds(t, &Plan{
		Seed: 9437026258527064679, Layout: Cluster, Instances: 3,
		Zones: []Zone{{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 4, Lease: 10 * time.Second}}},
		Events: []Event{
			{At: 180 * time.Millisecond, Kind: Take, Key: 1, Cost: 1, Delta: -1, After: 900 * time.Millisecond},
			{At: 300 * time.Millisecond, Kind: Take, Key: 1, Cost: 1, Delta: -1, After: 100 * time.Millisecond},
			{At: 300001 * time.Microsecond, Kind: Take, Key: 1, Cost: 1, Delta: -1, After: 100 * time.Millisecond},
			{At: 400 * time.Millisecond, Kind: Take, Key: 1, Cost: 3, Delta: -3, Returns: true},
			{At: 600 * time.Millisecond, Kind: Take, Key: 1, Cost: 1, Delta: -1, After: 500 * time.Millisecond},
			{At: 700 * time.Millisecond, Kind: Take, Instance: 1, Key: 1, Cost: 1, Delta: -1, After: 400 * time.Millisecond},
			{At: 700001 * time.Microsecond, Kind: Delay, For: 600 * time.Millisecond},
			{At: 800 * time.Millisecond, Kind: Take, Key: 1, Cost: 1, Delta: -1},
			{At: 918518987, Kind: Take, Key: 1, Cost: 1, Delta: -1},
			{At: time.Second, Kind: Take, Key: 1, Cost: 2, Delta: -2, After: 100 * time.Millisecond, Returns: true},
		},
	})
}

// TestFoundARefundAtTheInstantOfAnAnswer: an ask charged a request, and lent something that another request spent in the same
// microsecond. What that one gave back was taken for a charge of the store: Redis was to take it off, and had only the first charge.
func TestFoundARefundAtTheInstantOfAnAnswer(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Sentinels, Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Lend: 10 * time.Millisecond, BanAfter: 1, BanFor: time.Second, Paying: 1}},
		Events: []Event{
			{Kind: Request, Zone: -1},
			{At: 100 * time.Millisecond, Kind: Request, Cost: 1},
			{At: 200 * time.Millisecond, Kind: Request, Zone: -1, Sort: paying, Cost: 1},
			{At: 300 * time.Millisecond, Kind: Take, Cost: 1, Returns: true},
			{At: 400 * time.Millisecond, Kind: Take, Cost: 2, Delta: -2, Returns: true},
		},
	})
}

// TestFoundASlotThatWasNotCharged: Redis took a slot and was full before the answer came. The next call could not charge it, so it
// was not given back.
func TestFoundASlotThatWasNotCharged(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true, Addresses: 6, Work: 352203,
		Zones: []Zone{
			{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 1, Lease: 10 * time.Second}, DryRun: true},
			{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}, Costs: Costs{Asks: true}},
		},
		Events: []Event{
			{Kind: Take, Zone: 1, Cost: 1},
			{At: 10 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 20 * time.Millisecond, Kind: Full, Instance: -1, For: 2 * time.Millisecond},
		},
	})
}
