package algorithms

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// Concurrency limits how many requests run at the same time. Each request holds a lease on
// its slots, which is renewed while the request runs. If the process crashes, nothing
// renews the lease, and the slots come back when the lease ends.
//
// The waits in its decisions assume that no lease is renewed or given back.
type Concurrency struct{}

// Name implements [Algorithm].
func (Concurrency) Name() string { return "concurrency" }

// Prepare implements [Algorithm]. The parameters are the slots and the lease in
// microseconds.
func (a Concurrency) Prepare(l Limit) (Params, error) {
	if err := l.validate(a.Name(), supports{lease: true}); err != nil {
		return Params{}, err
	}
	lease := cmp.Or(l.Lease, DefaultLease)
	switch {
	case l.Events > MaxSlots:
		return Params{}, fmt.Errorf("events must be at most %d for %s, got %d", MaxSlots, a.Name(), l.Events)
	case lease < MinLease || lease > MaxLease:
		return Params{}, fmt.Errorf("lease must be from %s to %s, got %s", duration.Format(MinLease), duration.Format(MaxLease), duration.Format(lease))
	case lease%time.Microsecond != 0:
		return Params{}, fmt.Errorf("lease must be a whole number of microseconds, got %s", duration.Format(lease))
	}
	return Params{l.Events, lease.Microseconds()}, nil
}

// Decide implements [Leaser]. A lease that ends later than the longest one that begins now was made before the
// clock went back. When a request is refused, such leases are shortened to the lease of now, because nobody
// renews those of a process that has crashed: they would take their slots for as long as the step was.
func (Concurrency) Decide(l *Leases, p Params, now, cost int64) Decision {
	events, lease := p[0], p[1]
	live := l.live(now)
	allowed := cost <= min(max(0, events-live), MaxSlotCost)
	if !allowed && live > 0 && l.lastEnd(now) > now+MaxLease.Microseconds() {
		l.shorten(now+MaxLease.Microseconds(), now+lease)
	}
	used, charged := live, allowed && cost > 0
	if charged {
		used += cost
	}
	d := answer(allowed, events, used, cost, now, now, func(n int64) int64 {
		switch {
		case charged && n == 0:
			return max(l.lastEnd(now), now+lease)
		case charged && live > 0: // there is room, so the first slot that ends makes more
			return min(l.endOf(now, 0), now+lease)
		case charged:
			return now + lease
		}
		return l.endOf(now, used-n-1)
	})
	if cost > MaxSlotCost {
		d.RetryAfter = Never
	}
	return d
}

// Lease implements [Leaser].
func (Concurrency) Lease(l *Leases, p Params, now, cost int64, id string) {
	l.expire(now)
	l.put(id, now+p[1], cost)
}

// Renewal implements [Leaser]. It is a third of the lease, so that one lost renewal does no
// harm.
func (Concurrency) Renewal(p Params) time.Duration {
	return time.Duration(p[1]) * time.Microsecond / 3
}
