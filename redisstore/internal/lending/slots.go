package lending

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
)

// Of limits of concurrency nothing is lent, but slots are kept: the slot of a request that has ended is kept for the next
// request, as long as enough is free. To Redis and to the link it is a slot like any other. The link renews it, by
// the name of the request that took it, until it is given back. [Layer.Renewed] hears of each renewal that was
// answered, because a slot is used again only while its lease lasts for certain.

// useSlot decides a check with a slot that is kept, if there is one.
func (l *Layer) useSlot(r *lentRequest, i int, now lend.Moment) bool {
	c := &r.checks[i]
	if c.Alone() || c.LeaseID == "" || c.Cost == 0 {
		return false
	}
	d, ok := l.Slots.Get(c, now)
	if ok {
		r.decisions[i] = d
		r.slots.Add(i)
	} else if l.Loans.Often(c.Rule, c.Key, now) {
		r.often.Add(i)
	}
	return ok
}

// noteSlots puts the slots back of a request that does not pass, and notes those that
// Redis has given.
func (l *Layer) noteSlots(r *lentRequest, err error) {
	pass := err == nil
	for i := range r.checks {
		pass = pass && (r.checks[i].Alone() || r.decisions[i].Allowed)
	}
	for i := range r.checks {
		c, d := &r.checks[i], &r.decisions[i]
		switch {
		case r.slots.Has(i) && !pass:
			l.Slots.Cancel(c.LeaseID)
			d.Remaining = min(d.Remaining+c.Cost, d.Quota)
		case r.unlent.Has(i) && c.Rule.KeepsSlots() && !c.Alone() && c.LeaseID != "" && err == nil && d.Quota > 0:
			l.Slots.Told(c, r.sent, d, pass && c.Cost > 0, r.often.Has(i))
		}
	}
}

// releaseSlot keeps the slot of a request that has ended, and reports whether it did. Otherwise the
// adjustment gives it back, by its own name.
func (l *Layer) releaseSlot(a *layer.Adjustment) bool {
	if !a.Rule.KeepsSlots() || a.LeaseID == "" || a.Delta > -a.Cost {
		return false
	}
	fate, name := l.Slots.Release(a.LeaseID, l.Loans.Now(), l.Processes())
	switch fate {
	case loans.Kept:
		return true
	case loans.Back:
		a.LeaseID = name
	case loans.Unknown:
	}
	return false
}

// tendSlots gives back the slots that are not needed, and asks what is free.
func (l *Layer) tendSlots() {
	now := l.Loans.Now()
	back, peeks := l.Slots.Due(now, l.Processes())
	l.Layer.Adjust(layer.Of(back...)...)
	for some := range slices.Chunk(peeks, l.PerCall) {
		go func() {
			decisions := make([]algorithms.Decision, len(some))
			if l.Layer.Take(context.Background(), some, decisions) != nil {
				return
			}
			for i := range some {
				free := decisions[i].Remaining
				if decisions[i].Override != "" {
					free = 0 // see Told
				}
				l.Slots.Free(&some[i], now, free)
			}
		}()
	}
}
