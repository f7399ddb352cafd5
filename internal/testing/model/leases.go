package model

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// leases models concurrency. Leases that have ended are dropped when the next one is made.
type leases struct{ held []lease }

type lease struct {
	hold       string
	ends, cost int64
}

// asOf leaves out leases that end more than a day ahead. No lease is that long, so they were
// made before the clock went back.
func (s *leases) asOf(now int64) memory {
	return &leases{slices.DeleteFunc(slices.Clone(s.held), func(l lease) bool { return l.ends > now+day })}
}

func (s *leases) quota(l algorithms.Limit) int64 { return l.Events }

func (s *leases) left(l algorithms.Limit, now int64) int64 {
	used := int64(0)
	for _, one := range s.held {
		if one.ends > now {
			used += one.cost
		}
	}
	return max(0, l.Events-used)
}

func (s *leases) fits(l algorithms.Limit, now, cost int64) bool { return cost <= s.left(l, now) }

func (s *leases) charge(l algorithms.Limit, now, cost int64, hold string) {
	length := l.Lease
	if length == 0 {
		length = algorithms.DefaultLease
	}
	s.held = slices.DeleteFunc(s.held, func(one lease) bool { return one.ends <= now || one.hold == hold })
	s.held = append(s.held, lease{hold, now + length.Microseconds(), cost})
}

func (*leases) booked() int64 { return 0 }

// adjust ends a lease, as a whole.
func (s *leases) adjust(_ algorithms.Limit, _, _, delta int64, hold string) {
	s.held = slices.DeleteFunc(s.held, func(l lease) bool { return l.hold == hold && l.cost <= -delta })
}
