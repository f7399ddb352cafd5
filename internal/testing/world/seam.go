package world

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// seam is the store of an instance. It notes all that passes between the store and who uses it, and gives leases names
// that are the same each time: those of production count on from one world to the next.
type seam struct {
	*redisstore.Store
	w        *world
	instance *instance

	mu     sync.Mutex
	leases map[string]string // names in this world, by those of production
}

// client is who has come with an event. Its key in the context of calls is client(0).
type client int

// wait returns after some time. Others may wait for the same instant.
func (w *world) wait(d time.Duration, who client) { w.net.wait(w.net.now()+d, uint64(who)) }

// Take implements [store.Store].
func (s *seam) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	who, ok := ctx.Value(client(0)).(client)
	if !ok {
		return s.Store.Take(ctx, checks, decisions)
	}
	a := Answer{Event: int(who), Instance: s.instance.number, Began: s.w.net.now()}
	asked := slices.Clone(checks)
	for i := range asked {
		asked[i].LeaseID = s.lease(who, &asked[i])
	}
	err := s.Store.Take(ctx, asked, decisions)
	a.Ended = s.w.net.now()
	if err != nil {
		a.Failure, a.Err = store.Failure(err), err.Error()
	}
	if s.instance.dead() {
		a.Failure, a.Err = killed, killed
	}
	s.w.history.answers(a, asked, decisions)
	return err
}

// lease returns the name of a lease in this world, which does not depend on what else is in the plan.
func (s *seam) lease(who client, c *store.Check) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.LeaseID == "" || s.leases[c.LeaseID] != "" {
		return s.leases[c.LeaseID]
	}
	name := fmt.Sprintf("h%d.%d.%s", s.w.plan.Events[who].At, s.w.net.now(), c.Rule.Zone())
	s.leases[c.LeaseID] = name
	return name
}

// Adjust implements [store.Store].
func (s *seam) Adjust(adjustments ...store.Adjustment) {
	renamed := slices.Clone(adjustments)
	for i := range renamed {
		if id := renamed[i].LeaseID; id != "" {
			s.mu.Lock()
			renamed[i].LeaseID = s.leases[id]
			s.mu.Unlock()
		}
		if !s.instance.dead() {
			s.w.history.adjusted(s.w.net.now(), &renamed[i])
		}
	}
	s.Store.Adjust(renamed...)
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
			one.Charged = one.Decision.Allowed && !one.Decision.Exempt && (passes || c.Independent)
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
