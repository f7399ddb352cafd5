package redisstore

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Limits of concurrency lend in another way: the slot of a request that has ended is kept for the next
// request, as long as enough is free. It is a slot like any other to Redis, and is renewed like one. So
// nothing but who has it differs from limits that do not lend.

// takeSlot decides a check with a slot that is kept, if there is one.
func (s *Store) takeSlot(r *lentRequest, i int, now lend.Moment) bool {
	c := &r.checks[i]
	if c.Alone() || c.Hold == "" || c.Cost == 0 {
		return false
	}
	d, ok := s.slots.Take(c, now)
	if ok {
		r.decisions[i] = d
		r.slots.Add(i)
	} else if s.loans.Often(c.Rule, c.Key, now) {
		r.often.Add(i)
	}
	return ok
}

// settleSlots puts the slots back that were taken for a request that does not pass, and notes those that
// Redis has lent.
func (s *Store) settleSlots(r *lentRequest, err error) {
	pass := err == nil
	for i := range r.checks {
		pass = pass && (r.checks[i].Alone() || r.decisions[i].Allowed)
	}
	for i := range r.checks {
		c, d := &r.checks[i], &r.decisions[i]
		switch {
		case r.slots.Has(i) && !pass:
			s.slots.Cancel(c.Hold)
			d.Remaining = min(d.Remaining+c.Cost, d.Quota)
		case r.plain.Has(i) && c.Rule.KeepsSlots() && !c.Alone() && c.Hold != "" && err == nil && d.Quota > 0:
			s.slots.Told(c, r.sent, d, pass && c.Cost > 0, r.often.Has(i))
		}
	}
}

// releaseSlot keeps the slot of a request that has ended, and reports whether it did. Otherwise the
// adjustment gives it back, by its own name.
func (s *Store) releaseSlot(a *layer.Adjustment) bool {
	if !a.Rule.KeepsSlots() || a.Hold == "" || a.Delta > -a.Cost {
		return false
	}
	fate, name := s.slots.Release(a.Hold, s.loans.Now(), s.Instances())
	switch fate {
	case loans.Kept:
		if a.Done != nil {
			a.Done(true)
		}
		return true
	case loans.Back:
		a.Hold = name
	case loans.Unknown:
	}
	return false
}

// tendSlots gives back the slots that are not needed, and asks what is free.
func (s *Store) tendSlots() {
	now := s.loans.Now()
	back, peeks := s.slots.Due(now, s.Instances())
	s.giveSlotsBack(back)
	for some := range slices.Chunk(peeks, s.link.PerCall) {
		go func() {
			decisions := make([]algorithms.Decision, len(some))
			if s.inner.Take(context.Background(), some, decisions) != nil {
				return
			}
			for i := range some {
				s.slots.Free(&some[i], now, decisions[i].Remaining)
			}
		}()
	}
}

// giveSlotsBack gives slots back to Redis.
func (s *Store) giveSlotsBack(back []store.Adjustment) {
	for i := range back {
		s.link.Holds.Remove(back[i].Hold)
	}
	if len(back) > 0 {
		s.link.Outbox.Add(layer.Of(back...)...)
	}
}

// adjustLent carries out what it can of adjustments without Redis, and returns the others.
func (s *Store) adjustLent(adjustments []layer.Adjustment) []layer.Adjustment {
	if !slices.ContainsFunc(adjustments, func(a layer.Adjustment) bool { return a.Rule.Lend() > 0 }) {
		return adjustments
	}
	left := make([]layer.Adjustment, 0, len(adjustments))
	for _, a := range adjustments {
		if !s.refundLoan(&a) && !s.payLate(&a) && !s.releaseSlot(&a) {
			s.watch(&a)
			left = append(left, a)
		}
	}
	return left
}
