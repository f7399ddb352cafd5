package world

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What worlds have found.

// TestMasterBehindOneAddress: the address of Redis leads to a new master, which does not know the script, while the
// connections to the old one live on. A request met NOSCRIPT after READONLY, and failed.
func TestMasterBehindOneAddress(t *testing.T) {
	for _, lend := range []time.Duration{0, time.Second} {
		p := &Plan{Seed: 1, Instances: 2, Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 100, Window: time.Hour}, Lend: lend}}}
		for i := range 10 {
			at := time.Duration(i) * 50 * time.Millisecond
			p.Events = append(p.Events, Event{At: at, Kind: Take, Cost: 1}, Event{At: at + 20*time.Microsecond, Kind: Take, Cost: 1})
		}
		p.Events = append(p.Events,
			Event{At: time.Second, Kind: Demote}, Event{At: 1100 * time.Millisecond, Kind: Take, Cost: 1})
		h := Run(t, p)
		for _, violation := range Check(h) {
			t.Errorf("lend %v: %s", lend, violation)
		}
	}
}

// TestLateCostKeepsItsWindow: a late cost that a bucket with intervals cannot pay at once keeps its windows where they
// are. The model that checks worlds does not know of late costs, and began another window.
func TestLateCostKeepsItsWindow(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 2, Window: time.Second, Refill: "interval"}}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: time.Millisecond, Kind: Take, Cost: 1, Delta: 1},
			{At: 2 * time.Second, Kind: Take, Cost: 1},
			{At: 2001 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 2002 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}

// TestMaxWaitSharesHolds: a request of a zone with another max_wait, as after a reload, could not spend what its
// instance had been lent before, and was refused.
func TestMaxWaitSharesHolds(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1, Whole: true,
		Zones: []Zone{
			{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 4, Window: time.Second}, Lend: 200 * time.Millisecond, MaxWait: 1},
			{Algorithm: "concurrency", Limit: algorithms.Limit{Events: 1, Lease: 10 * time.Second}, MaxWait: 200 * time.Millisecond},
		},
		Events: []Event{
			{At: time.Second, Kind: Take, Zone: 1, Cost: 1, Delta: -1, After: 100 * time.Millisecond},
			{At: 1000001 * time.Microsecond, Kind: Request, Zone: -1, Cost: 1},
			{At: 1300 * time.Millisecond, Kind: Take, Cost: 3},
		},
	})
}

// TestConnectionsBrokenWhileIdle: a demoted master broke idle connections of which nobody could tell before a write, and
// each of them cost a request.
func TestConnectionsBrokenWhileIdle(t *testing.T) {
	holds(t, &Plan{
		Seed: 3, Even: true, Layout: "Cluster", Instances: 2,
		Zones:  []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 1, Window: time.Millisecond}}},
		Events: []Event{{At: time.Second, Kind: Promote, For: 690 * time.Millisecond}},
	})
}

// TestOldConnectionsAreGivenUp: each connection to a master that has become a replica cost a request.
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
		h := Run(t, p)
		for _, violation := range Check(h) {
			t.Errorf("lend %v: %s", lend, violation)
		}
		for _, a := range h.Answers {
			if a.Began > 3*time.Second && a.Failure != "" {
				t.Errorf("lend %v: client %d fails at %v: %s", lend, a.Event, a.Ended, a.Err)
			}
		}
	}
}

// TestRefundOfASpentHold: a refund to a hold of which all was spent was lost if no request came before the hold ended.
func TestRefundOfASpentHold(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Lend: time.Second}},
		Events: []Event{
			{Kind: Take, Cost: 1},
			{At: time.Microsecond, Kind: Take},
			{At: 2 * time.Microsecond, Kind: Take, Cost: 1},
			{At: time.Second, Kind: Take, Cost: 1},
			{At: 1100 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 2 * time.Second, Kind: Take, Cost: 1},
			{At: 2000001 * time.Microsecond, Kind: Take, Cost: 1, Delta: -1, After: 200 * time.Millisecond},
		},
	})
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
	h := Run(t, p)
	for _, violation := range Check(h) {
		t.Error(violation)
	}
	for _, d := range h.Deeds {
		if d.Failure == "" {
			t.Errorf("%s does not fail", d.Kind)
		}
	}
}

// TestBusyIsNoFault: clients come faster than their Caddy has time for, while Redis answers at once. None of them is let
// through or refused as if Redis did not answer.
func TestBusyIsNoFault(t *testing.T) {
	for _, on := range []string{config.AllowOnError, config.DenyOnError} {
		p := &Plan{
			Seed: 1, Even: true, Instances: 1, Whole: true, Work: 4 * time.Millisecond,
			Zones:  []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 10, Window: time.Hour}, Overrides: true, OnError: on}},
			Events: []Event{{Kind: Take, Cost: 1}, {At: time.Second, Kind: Flood, Cost: 500}},
		}
		h := Run(t, p)
		for _, violation := range Check(h) {
			t.Error(violation)
		}
		if !slices.ContainsFunc(h.Answers, func(a Answer) bool { return a.Failure == store.FailureBusy }) {
			t.Error("the Caddy is not busy")
		}
	}
}

// TestDryRunBesideAHold: a call that found parts of a key lent had charged the dry run beside it, and was made again with it.
func TestDryRunBesideAHold(t *testing.T) {
	for _, layout := range []Layout{Single, Sentinels, Cluster} {
		p := &Plan{
			Seed: 1, Even: true, Layout: layout, Instances: 1, Whole: true,
			Zones: []Zone{
				{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 8, Window: 56 * time.Second}, Lend: 10 * time.Millisecond, Overrides: true, OnError: "local", Judges: true},
				{Algorithm: "sliding_window_counter", Limit: algorithms.Limit{Events: 1, Window: time.Hour}, Overrides: true, OnError: "local", DryRun: true, Judges: true},
			},
			Events: []Event{
				{Kind: Request, Zone: -1},
				{At: 1, Kind: Take, Cost: 1},
				{At: time.Second, Kind: Request},
				{At: 1000000001, Kind: Take, Cost: 1},
				{At: 1100999999, Kind: Take, Cost: 1},
				{At: 1101000000, Kind: Take, Cost: 1},
				{At: 1101000001, Kind: Take, Cost: 1},
				{At: 1101999999, Kind: Request, Zone: -1, Cost: 1},
			},
		}
		for _, violation := range Check(Run(t, p)) {
			t.Errorf("%q: %s", layout, violation)
		}
	}
}

// TestRefundWaitsForItsWindow: a refund waited until Redis could write again, after another charge. The model that checks
// worlds gave it back at once, and began another window with that charge.
func TestRefundWaitsForItsWindow(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 1,
		Zones: []Zone{{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 2, Window: 1900 * time.Millisecond, Refill: "interval"}}},
		Events: []Event{
			{At: time.Millisecond, Kind: Take, Cost: 1, Delta: -1},
			{At: 2 * time.Millisecond, Kind: Unsaved, Instance: -1, For: time.Second},
			{At: 1200 * time.Millisecond, Kind: Take, Cost: 1},
			{At: 2 * time.Second, Kind: Take, Cost: 2},
		},
	})
}

// TestDebtOfAPlanIsBounded: a plan allows less than the zone. What a response costs late leaves at most twice the plan's limit,
// which the check of keys at rest did not know.
func TestDebtOfAPlanIsBounded(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Layout: Cluster, Instances: 1, Whole: true,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Paying: 2}},
		Events: []Event{
			{Kind: Request, Zone: -1, Sort: "paying", Cost: 2, Delta: 1, After: time.Millisecond},
			{At: time.Millisecond, Kind: Take, Cost: 1},
			{At: 2 * time.Millisecond, Kind: Take, Cost: 1},
		},
	})
}

// TestFoundARefundAfterAnUnbegunAsk: an ask was to report what was spent, and Redis was a replica without its master. What was
// given back of that then was sent to Redis, which had nothing to take it off.
func TestFoundARefundAfterAnUnbegunAsk(t *testing.T) {
	holds(t, &Plan{
		Seed: 1, Even: true, Instances: 1,
		Zones: []Zone{{Algorithm: "sliding_window_log", Limit: algorithms.Limit{Events: 100, Window: time.Hour}, Lend: 10 * time.Millisecond}},
		Events: []Event{
			{Kind: Take},
			{At: time.Microsecond, Kind: Take},
			{At: time.Second, Kind: Take},
			{At: 1000001 * time.Microsecond, Kind: Take},
			{At: 1100 * time.Millisecond, Kind: Take},
			{At: 1100001 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1100002 * time.Microsecond, Kind: Take, Cost: 1},
			{At: 1101 * time.Millisecond, Kind: Take, Cost: 3, Delta: -2, After: 2 * time.Millisecond},
			{At: 1102 * time.Millisecond, Kind: MasterDown, Instance: -1, For: 150 * time.Microsecond},
			{At: 1102001 * time.Microsecond, Kind: Take, Cost: 1},
		},
	})
}
