package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// What worlds have found.

// TestOldConnectionsAreGivenUp: the address of Redis leads to a new master, which does not know the script. Each connection to the old
// one, which has become a replica, cost a request.
func TestOldConnectionsAreGivenUp(t *testing.T) {
	for _, lend := range []time.Duration{0, time.Second} {
		p := &Plan{Seed: 2, Even: true, Instances: 1, Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 100, Window: time.Hour}, Lend: lend}}}
		p.Events = append(p.Events, Event{Kind: Take, Cost: 1},
			Event{At: 100 * time.Millisecond, Kind: Freeze, For: 40 * time.Millisecond})
		for i := range 12 { // calls that are under way together, each on a connection
			p.Events = append(p.Events, Event{At: 101*time.Millisecond + time.Duration(i)*3*time.Millisecond, Kind: Take, Key: i % maxKeys, Cost: 1})
		}
		p.Events = append(p.Events, Event{At: 2 * time.Second, Kind: Demote})
		for i := range 10 {
			p.Events = append(p.Events, Event{At: 3*time.Second + time.Duration(i)*time.Second, Kind: Take, Key: i % maxKeys, Cost: 1})
		}
		h := holds(t, p)
		for _, a := range h.Answers {
			if a.Began > 3*time.Second && a.Failure != "" {
				t.Errorf("lend %v: client %d fails at %v: %s", lend, a.Event, a.Ended, a.Err)
			}
		}
	}
}

// TestOperatorsAreToldTheKind: what an operator asks fails with the kind of the error, as requests do.
func TestOperatorsAreToldTheKind(t *testing.T) {
	p := &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 2, Window: time.Second}, Overrides: true}},
		Events: []Event{
			{Kind: Full, For: time.Second, Instance: -1},
			{At: time.Millisecond, Kind: Override, Sort: exempt},
			{At: time.Second, Kind: Readonly, For: time.Second, Instance: -1},
			{At: time.Second + time.Millisecond, Kind: Clear},
			{At: time.Second + 2*time.Millisecond, Kind: Unban},
			{At: time.Second + 3*time.Millisecond, Kind: Reset},
		},
	}
	h := holds(t, p)
	for _, d := range h.Deeds {
		if d.Failure == "" {
			t.Errorf("%s does not fail", d.Kind)
		}
	}
}

// TestFoundNetworksThatAReplicaLacks: a Sentinel named a replica that knew no networks, for a moment. An instance forgot its
// networks then, and did not ask the master for them until one changed.
func TestFoundNetworksThatAReplicaLacks(t *testing.T) {
	for _, lend := range []time.Duration{0, time.Second} {
		p := &Plan{
			Seed: 6082625548161670691, Layout: Sentinels, Instances: 1,
			Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 800, Window: time.Hour}, Lend: lend, Overrides: true}},
			Events: []Event{
				{Kind: Override, Key: -2, Sort: banned, Cost: 1},
				{At: 2 * time.Second, Kind: Lie, For: time.Millisecond, Surely: true},
				{At: 8 * time.Second, Kind: Override, Key: -1, Sort: exempt, Cost: 1}, // a heartbeat brings a mark from now on
				{At: 10 * time.Second, Kind: Lie, For: time.Millisecond, Surely: true},
			},
		}
		holds(t, p)
	}
}

// TestFoundAnExemptLogThatAsksAhead: a log that was exempt and asked for units ahead had a reply without their number, so a
// request failed.
func TestFoundAnExemptLogThatAsksAhead(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{
			Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: 100 * time.Millisecond}, Lend: 10 * time.Millisecond, Overrides: true,
		}},
		Events: []Event{
			{Kind: Take},
			{At: time.Millisecond, Kind: Override, Sort: "exempt", Cost: 1},
			{At: 2 * time.Millisecond, Kind: Take},
			{At: 3 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}

// TestFoundCostsOfNothing: a key got an override while an instance held parts of its limit. The instance learned of it, but
// requests that cost nothing passed as before until the hold ended.
func TestFoundCostsOfNothing(t *testing.T) {
	for _, what := range []string{banned, exempt, limited} {
		p := &Plan{
			Seed: 1, Even: true, Instances: 2,
			Zones: []Zone{{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 7, Window: 112500 * time.Millisecond}, Lend: time.Second, Overrides: true}},
			Events: []Event{
				{Kind: Take},
				{At: time.Microsecond, Kind: Take},
				{At: 2 * time.Microsecond, Kind: Take},
				{At: time.Second, Kind: Take},
				{At: 1100002 * time.Microsecond, Kind: Take, Cost: 1},
				{At: 1101002 * time.Microsecond, Kind: Override, Instance: 1, Sort: what, Cost: 1},
				{At: 2100002 * time.Microsecond, Kind: Take},
			},
		}
		holds(t, p)
	}
}

// TestFoundAddressesThatNetworksPassOver: an operator set the override of an address, and cleared it at another instance, which had
// not learned of it yet. The networks around the address did not decide about it any more, and so a ban did not hold.
func TestFoundAddressesThatNetworksPassOver(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 2, Whole: true, Addresses: 4,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Overrides: true}},
		Events: []Event{
			{Kind: Override, Sort: exempt, Cost: 1},
			{At: 100 * time.Millisecond, Kind: Clear, Instance: 1, Cost: 1},
			{At: 200 * time.Millisecond, Kind: Override, Key: -2, Sort: banned, Cost: 1},
			{At: 8 * time.Second, Kind: Request, Cost: 1},
			{At: 9 * time.Second, Kind: Request, Instance: 1, Cost: 1},
		},
	})
}

// TestFoundARefundOfNoCharge: Redis could not write, so the charge of a dry run was not made. Another zone refused the request, and the
// dry run gave back what was not charged: another request was above the limit.
func TestFoundARefundOfNoCharge(t *testing.T) {
	holds(t, &Plan{
		Seed: 2, Even: true, Layout: "Cluster", Instances: 1, Whole: true, Addresses: 4,
		Zones: []Zone{
			{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 2, Window: 10 * time.Second}, DryRun: true},
			{
				Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: 5 * time.Millisecond}, Overrides: true,
				BanAfter: 1, BanFor: time.Second,
			},
		},
		Events: []Event{
			{Kind: Take, Zone: 1, Cost: 1},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 3 * time.Millisecond, Kind: Readonly, Instance: -1, For: 3 * time.Millisecond},
			{At: 4 * time.Millisecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 3 * time.Second, Kind: Take, Cost: 1},
			{At: 3001 * time.Millisecond, Kind: Take, Cost: 1},
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

// TestFoundASlotAfterTheClockWentBack: a careful call, which must not shorten leases from before the clock of Redis went back, tells a
// wait as if it had.
func TestFoundASlotAfterTheClockWentBack(t *testing.T) {
	holds(t, &Plan{
		Seed: 0x25610bec7e1b787c, Even: true, Layout: "Sentinels", Instances: 2,
		Zones: []Zone{{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 2, Lease: 10 * time.Second}}},
		Events: []Event{
			{At: 1039391560, Kind: "Take", Cost: 2, Delta: -2, After: 977137592},
			{At: 1420703519, Kind: "Promote", Instance: -1, For: 275842643},
			{At: 1524517996, Kind: "Step", Instance: -1, After: -5681587967736, For: 386028727},
			{At: 1856719872, Kind: "Take", Instance: 1, Cost: 1, Delta: -1, After: 682322974, Returns: true},
		},
	})
}
