package limiter

import (
	"cmp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/turns"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Entry is a request in a zone that counts it: what the store is asked, what was decided, and what follows. That of a dry run
// has no effect on the request.
type Entry struct {
	zone.Check
	Outcome outcome.Outcome
	lease   string        // the name of its slot
	waiter  *turns.Waiter // for its turn; nil if that has come
}

func (e *Entry) isDryRun() bool   { return e.DryRun }
func (e *Entry) isEnforced() bool { return !e.DryRun }

// Asked reports whether the zone asks the store.
func (e *Entry) Asked() bool { return e.Policy != nil && e.Rejection == nil }

// Ask is what the zone asks the store. There must be a Policy.
func (e *Entry) Ask() store.Check {
	return store.Check{
		Rule: e.Policy.Rule, Key: e.Key, Cost: e.Cost, LeaseID: e.lease, Independent: e.DryRun, KeyRules: e.Zone.KeyRules,
	}
}

// Reason is why the zone refuses the request, if it does.
func (e *Entry) Reason() error { return cmp.Or(e.Rejection, e.Zone.Exceeded) }

// refused is the outcome of a refusal. Without a Policy it is not one by a limit.
func (e *Entry) refused() outcome.Outcome {
	switch {
	case e.DryRun:
		return outcome.DryRun
	case e.Policy == nil:
		return outcome.Rejected
	}
	return zone.RefusalOutcome(&e.Decision)
}

// Unknown reports whether the decision has no numbers: the store has refused the request for another zone, and not decided this one.
func (e *Entry) Unknown() bool { return e.Decision == algorithms.Decision{Allowed: true} }

// ShareLeft returns the part of the quota that is left, from 0 to 1.
func (e *Entry) ShareLeft() float64 {
	return float64(e.Decision.Remaining) / float64(max(1, e.Decision.Quota))
}

// charged reports whether the store has charged the request.
func (e *Entry) charged() bool { return e.Decision.Allowed && !e.Decision.Uncharged && e.Cost > 0 }

// queues reports whether the request waits for its turn.
func (e *Entry) queues() bool { return !e.DryRun && e.Decision.Delay > 0 }

// giveBack returns the adjustment that gives back all of the charge.
func (e *Entry) giveBack() store.Adjustment {
	asked := e.Ask()
	return store.GiveBack(&asked, &e.Decision)
}
