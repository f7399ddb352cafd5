package world

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// What worlds have found of overrides and networks.

// TestFoundNetworksThatAReplicaLacks: a Sentinel named a replica that knew no networks, for a moment. An instance forgot its
// networks then, and did not ask the master for them until one changed.
func TestFoundNetworksThatAReplicaLacks(t *testing.T) {
	for _, lend := range []time.Duration{0, time.Second} {
		p := &Plan{
			Seed: 6082625548161670691, Layout: Sentinels, Instances: 1,
			Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 800, Window: time.Hour}, Lend: lend, Overrides: true}},
			Events: []Event{
				{Kind: Network, Sort: banned, Cost: 1},
				{At: 2 * time.Second, Kind: Lie, For: time.Millisecond, Surely: true},
				{At: 8 * time.Second, Kind: Network, Sort: exempt, Key: 1, Cost: 1}, // a heartbeat brings a mark from now on
				{At: 10 * time.Second, Kind: Lie, For: time.Millisecond, Surely: true},
			},
		}
		for _, violation := range Check(Run(t, p)) {
			t.Errorf("lend %v: %s", lend, violation)
		}
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
		for _, violation := range Check(Run(t, p)) {
			t.Errorf("%s: %s", what, violation)
		}
	}
}

// TestFoundAnOverrideWithinAWindow: an override raises a limit within a window that began with a request. The window goes on: it is
// not the override's own, as a check took it to be.
func TestFoundAnOverrideWithinAWindow(t *testing.T) {
	p := &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{
			{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 3, Window: 10 * time.Millisecond, Align: algorithms.AlignFirstRequest}, Overrides: true},
		},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: time.Millisecond, Kind: Take, Cost: 1},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 3 * time.Millisecond, Kind: Take, Cost: 3, Returns: true},
			{At: 4 * time.Millisecond, Kind: Take, Cost: 1, Returns: true},
			{At: 5 * time.Millisecond, Kind: Override, Sort: limited, Cost: 5},
			{At: 6 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 7 * time.Millisecond, Kind: Take, Cost: 1},
		},
	}
	h := Run(t, p)
	for _, violation := range Check(h) {
		t.Error(violation)
	}
	for i := range h.Answers { // and the check sees one more
		if a := &h.Answers[i]; a.Event == 7 {
			a.Cost = 2
		}
	}
	if len(Check(h)) == 0 {
		t.Error("no check finds 6 in a window of 5")
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
			{At: 200 * time.Millisecond, Kind: Network, Sort: banned, Cost: 1},
			{At: 8 * time.Second, Kind: Request, Cost: 1},
			{At: 9 * time.Second, Kind: Request, Instance: 1, Cost: 1},
		},
	})
}

// TestFoundAHoldAfterABan: a request asked for itself, because an ask took long, and heard that an operator had banned its key. The ask
// had been decided before, and its hold came later: the next requests spent that.
func TestFoundAHoldAfterABan(t *testing.T) {
	p := &Plan{
		Even: true, Instances: 3,
		Zones: []Zone{{Algorithm: "fixed_window", Limit: algorithms.Limit{Events: 219, Window: 750 * time.Millisecond}, Lend: 50 * time.Millisecond, Overrides: true}},
		Events: []Event{
			{At: time.Second, Kind: Take},
			{At: 1000001 * time.Microsecond, Kind: Take},
			{At: 1000002 * time.Microsecond, Kind: Take},
			{At: 1002 * time.Millisecond, Kind: Take},
			{At: 1040999 * time.Microsecond, Kind: LoseRequests, For: 200 * time.Microsecond, Surely: true},
			{At: 1041 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 1050 * time.Millisecond, Kind: Delay, After: 10 * time.Millisecond, For: 50 * time.Millisecond},
			{At: 1070 * time.Millisecond, Kind: Take},
			{At: 1100 * time.Millisecond, Kind: Override, Instance: 1, Sort: banned, Cost: 1},
			{At: 1110 * time.Millisecond, Kind: Take},
		},
	}
	for p.Seed = range uint64(10) { // in some of them the hold comes so late
		for _, violation := range Check(Run(t, p)) {
			t.Errorf("seed %d: %s", p.Seed, violation)
		}
	}
}

// TestFoundARefusalBehindItsOwnHold: requests waited too long for an ask of their own instance, and asked for themselves in the same call.
// The last of them was refused because of what the ask had been lent, which came so late that nobody could spend it.
func TestFoundARefusalBehindItsOwnHold(t *testing.T) {
	for _, is := range []struct {
		delay time.Duration
		zone  Zone
	}{
		{delay: 2 * time.Millisecond},
		{delay: 6 * time.Millisecond}, // so that the hold comes too late
		{delay: 2 * time.Millisecond, zone: Zone{BanAfter: 30, BanFor: time.Second}},
		{delay: 6 * time.Millisecond, zone: Zone{BanAfter: 30, BanFor: time.Second}},
	} {
		is.zone.Algorithm, is.zone.Limit, is.zone.Lend = "sliding_window_log", algorithms.Limit{Events: 10, Window: 50 * time.Millisecond}, 10*time.Millisecond
		p := &Plan{
			Even: true, Instances: 1,
			Zones: []Zone{is.zone},
			Events: []Event{
				{Kind: Delay, For: is.delay, Surely: true},
				{At: time.Millisecond, Kind: Take},
				{At: 2 * time.Millisecond, Kind: Take},
			},
		}
		for i := range 9 {
			p.Events = append(p.Events, Event{At: time.Duration(3+i) * time.Millisecond, Kind: Take, Cost: 1})
		}
		for p.Seed = range uint64(10) {
			for _, violation := range Check(Run(t, p)) {
				t.Errorf("a delay of %v, %d refusals for a ban, seed %d: %s", is.delay, is.zone.BanAfter, p.Seed, violation)
			}
		}
	}
}

// TestFoundABanByOneRefusal: with a hold that may have come to nothing, a request that was refused asked again, and each of its refusals
// counted towards the ban.
func TestFoundABanByOneRefusal(t *testing.T) {
	p := &Plan{
		Even: true, Layout: "Cluster", Instances: 1,
		Zones: []Zone{{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 1, Window: 56 * time.Second}, Lend: time.Second, BanAfter: 3, BanFor: time.Second}},
		Events: []Event{
			{Kind: Take},
			{At: time.Microsecond, Kind: Take},
			{At: 2 * time.Microsecond, Kind: Take},
			{At: time.Second, Kind: Take, Cost: 1},
			{At: 1100 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 1101 * time.Millisecond, Kind: Delay, For: 600 * time.Millisecond, Surely: true},
			{At: 1102 * time.Millisecond, Kind: Take},
			{At: 2 * time.Second, Kind: Take, Cost: 1},
		},
	}
	for p.Seed = range uint64(10) {
		for _, violation := range Check(Run(t, p)) {
			t.Errorf("seed %d: %s", p.Seed, violation)
		}
	}
}

// TestFoundABanOfWhoPasses: many requests at once asked by themselves while their instance was being lent what they lacked. Each was
// decided again and passed, and still its first refusal counted towards a ban.
func TestFoundABanOfWhoPasses(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Work: 249520,
		Zones: []Zone{
			{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 500, Window: 1500 * time.Millisecond}, Lend: 20 * time.Millisecond, BanAfter: 4, BanFor: time.Second},
			{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}},
		},
		Events: []Event{
			{Kind: Take, Zone: 1},
			{At: 100 * time.Millisecond, Kind: Flood, Zone: 1, Cost: 170},
			{At: 200 * time.Millisecond, Kind: Flood, Cost: 399},
		},
	})
}

// TestFoundARefundOfNoCharge: Redis could not write, so the charge of a dry run was not made. Another zone refused the request, and the
// dry run gave back what was not charged: another request was above the limit.
func TestFoundARefundOfNoCharge(t *testing.T) {
	holds(t, &Plan{
		Seed: 2, Even: true, Layout: "Cluster", Instances: 1, Whole: true, Addresses: 4,
		Zones: []Zone{
			{Algorithm: "leaky_bucket", Limit: algorithms.Limit{Events: 2, Window: 10 * time.Second}, Enforced: 4.943455813618286, Costs: Costs{Asks: true}},
			{
				Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: 5 * time.Millisecond}, Overrides: true,
				BanAfter: 1, BanFor: time.Second, Costs: Costs{Asks: true},
			},
		},
		Events: []Event{
			{Kind: Take, Zone: 1, Cost: 1},
			{At: time.Millisecond, Kind: Request, Zone: -1},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 3 * time.Millisecond, Kind: Readonly, Instance: -1, For: 3 * time.Millisecond},
			{At: 3 * time.Second, Kind: Take, Cost: 1},
			{At: 3001 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}
