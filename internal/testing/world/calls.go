package world

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// client is who has come with an event. Its key in the context of calls is client(0).
type client int

// wait returns after some time. Others may wait for the same instant.
func (w *world) wait(d time.Duration, who client) { w.net.wait(w.net.now()+d, uint64(who)) }

// Take implements [store.Store].
func (in *instance) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	who, ok := ctx.Value(client(0)).(client)
	if !ok {
		return in.Store.Take(ctx, checks, decisions)
	}
	a := Answer{Event: int(who), Instance: in.number, Began: in.w.net.now()}
	asked := slices.Clone(checks)
	for i := range asked {
		asked[i].LeaseID = in.lease(who, &asked[i])
	}
	err := in.Store.Take(ctx, asked, decisions)
	a.Ended = in.w.net.now()
	if err != nil {
		a.Failure, a.Err = store.Failure(err), err.Error()
	}
	if in.dead() {
		a.Failure, a.Err = killed, killed
	}
	in.w.history.answers(a, asked, decisions)
	return err
}

// lease returns the name of a lease in this world, which does not depend on what else is in the plan.
func (in *instance) lease(who client, c *store.Check) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.LeaseID == "" || in.leases[c.LeaseID] != "" {
		return in.leases[c.LeaseID]
	}
	name := fmt.Sprintf("h%d.%d.%s", in.w.plan.Events[who].At, in.w.net.now(), c.Rule.Zone())
	in.leases[c.LeaseID] = name
	return name
}

// Adjust implements [store.Store].
func (in *instance) Adjust(adjustments ...store.Adjustment) {
	renamed := slices.Clone(adjustments)
	for i := range renamed {
		if id := renamed[i].LeaseID; id != "" {
			in.mu.Lock()
			renamed[i].LeaseID = in.leases[id]
			in.mu.Unlock()
		}
		if !in.dead() {
			in.w.history.adjusted(in.w.net.now(), &renamed[i])
		}
	}
	in.Store.Adjust(renamed...)
}

// answers notes what a call of a store was answered.
func (h *History) answers(a Answer, checks []store.Check, decisions []algorithms.Decision) {
	passes := true
	for i := range checks {
		passes = passes && (checks[i].Alone() || decisions[i].Allowed)
	}
	for i := range checks {
		one, c := a, &checks[i]
		at, ok := h.Plan.placeOf(c)
		if !ok || c.Peek {
			continue
		}
		one.Zone, one.Key = at.zone, at.key
		one.Cost, one.Lease, one.Independent = c.Cost, c.LeaseID, c.Independent
		if a.Failure == "" {
			one.Decision = decisions[i]
			one.Charged = one.Decision.Allowed && !one.Decision.Exempt && (passes || c.Independent && !one.Decision.Uncharged)
		}
		tell(h, &h.Answers, one)
	}
}

// placeOf returns which zone and which key of a plan a check is of, if it is of one.
func (p *Plan) placeOf(c *store.Check) (at place, ok bool) {
	for zone := range p.Zones {
		for key := range p.keys() {
			if c.Rule.Zone() == zoneName(zone) && c.Key == p.keyName(key) {
				return place{zone, key}, true
			}
		}
	}
	return place{}, false
}
