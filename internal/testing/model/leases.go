package model

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// leases models concurrency. Leases that have ended are dropped when the next one is made.
type leases struct{ held []lease }

type lease struct {
	id         string
	ends, cost int64
}

func (s *leases) asOf(_ algorithms.Limit, now int64) memory {
	return &leases{slices.DeleteFunc(slices.Clone(s.held), func(l lease) bool { return l.ends > now+century })}
}

// shorten lets leases end as one that begins now does that end later than the longest one that could.
func (s *leases) shorten(l algorithms.Limit, now int64) {
	for i := range s.held {
		if s.held[i].ends > now+algorithms.MaxLease.Microseconds() {
			s.held[i].ends = now + leaseOf(l)
		}
	}
}

// leaseOf returns the length of a lease, in microseconds.
func leaseOf(l algorithms.Limit) int64 {
	if l.Lease == 0 {
		return algorithms.DefaultLease.Microseconds()
	}
	return l.Lease.Microseconds()
}

func (s *leases) left(l algorithms.Limit, now int64) int64 {
	used := int64(0)
	for _, one := range s.held {
		if one.ends > now {
			used += one.cost
		}
	}
	return max(0, l.Events-used)
}

func (s *leases) charge(l algorithms.Limit, now, cost int64, id string) {
	s.held = slices.DeleteFunc(s.held, func(one lease) bool { return one.ends <= now || one.id == id })
	s.held = append(s.held, lease{id, now + leaseOf(l), cost})
}

func (*leases) booked() int64 { return 0 }

func (*leases) ahead(algorithms.Limit, int64, int64, int64) (units, lasts int64) { return 0, 0 }

// adjust ends a lease, as a whole.
func (s *leases) adjust(_ algorithms.Limit, _, _, _, delta int64, id string) {
	s.held = slices.DeleteFunc(s.held, func(l lease) bool { return l.id == id && l.cost <= -delta })
}
