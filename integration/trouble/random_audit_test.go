package trouble_test

import (
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// audit compares all accounts with Redis, while there are no requests.
func (s *storm) audit(auditor *redisstore.Store) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost uint64
	for i := range s.stores {
		lost += s.stats(i).Lost
	}
	told := int64(lost - s.lost)
	s.lost = lost
	s.totals.lost += told
	var missing, later, lossable int64
	for _, c := range s.cells {
		for _, a := range s.accounts[c] {
			lossable += int64(a.lossable)
			a.lossable = min(a.lossable, int(told))
			if a.lends { // what an instance holds may hide for a while that something is lost
				a.mayLack = min(a.mayLack+a.lossable, int(s.totals.lost))
				a.lossable = a.mayLack
			}
			if counted(a.client) {
				n := s.compare(auditor, a)
				if s.totals.audits++; a.lends {
					a.mayLack -= int(n)
					later += n
				} else {
					missing += n
				}
			}
			s.within(a)
			a.reset()
		}
	}
	if s.hidden += told - missing - later; missing > told || s.hidden < 0 {
		s.t.Errorf("%d late costs and refunds are missing, %d of which parts are lent, and the stores count %d", missing+later, later, told)
	}
	if told > lossable {
		s.t.Errorf("%d late costs and refunds were given up, and only %d may have been carried out", told, lossable)
	}
}

// compare compares an account with what Redis says, and takes that over. It returns how many late costs or
// refunds are missing.
func (s *storm) compare(auditor *redisstore.Store, a *account) (missing int64) {
	s.t.Helper()
	var used, low, high int64
	ask := func() bool {
		var err error
		if used, err = a.used(auditor, a.client); err != nil {
			s.t.Errorf("%s, %s: %v", a.zone, a.client, err)
			return true
		}
		low, high = s.bounds(a)
		return used <= high
	}
	if !ask() && a.lends {
		patient.Until(s.t, a.zone+": what is not lent any more", ask)
	}
	size := int64(1)
	if a.special == "late" {
		size = lateCost
		missing = (max(low-used, 0) + size - 1) / size
	} else if a.special == "refund" {
		missing = max(used-high, 0)
	}
	if missing > int64(a.lossable) || missing == 0 && (used < low || used > high) {
		s.fail(a, "Redis has charged %d, the account has %d to %d, and %d of its changes may be lost", used, low, high, a.lossable)
	}
	if exact := !a.lends && !a.slots && a.special != "refund" && a.special != "ban" && !s.forgot; exact && a.least > 0 && used+a.least <= a.whole() {
		s.fail(a, "Redis refused a cost of %d although only %d of %d are used", a.least, used, a.whole())
	}
	switch {
	case !a.lends:
		a.sum, a.down, a.up = used, 0, 0
		a.room, a.passed, a.back, a.extra = max(a.whole()-used, 0), 0, 0, 0
		if a.special == "refund" {
			a.extra = a.tolerance // which Redis rounds up
		}
	case a.special == "late":
		a.down += missing * size
	default:
		a.up += missing
	}
	a.seen = used > 0
	return missing
}

// bounds returns what Redis may have charged.
func (s *storm) bounds(a *account) (low, high int64) {
	low, high = a.sum-a.down, a.sum+a.up
	if a.special == "refund" {
		low, high = low-a.tolerance, high+a.tolerance
	}
	switch {
	case !a.lends, s.ended && a.slots:
	case s.dirty || s.timed: // loans may be lost, which count as spent
		high = max(high, a.whole()+a.lateSum+a.up)
	default:
		high += s.lent(a.cell)
	}
	if a.loose {
		low = 0
	}
	low = min(low, a.whole()) // Redis does not tell debts
	return low, high
}

func (a *account) reset() {
	a.late, a.refunds, a.open, a.lossable, a.least = 0, 0, 0, 0, 0
}
