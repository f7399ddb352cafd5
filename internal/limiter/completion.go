package limiter

import (
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// complete returns the completion of a request that may pass.
func (v *Verdict) complete(s pool.Session) *late.Completion {
	c := late.New(v.strips, s, v.leased())
	if v.late {
		v.bookLate(c)
	}
	return c
}

// giveBack returns the adjustment that gives back all of a charge.
func (v *Verdict) giveBack(i int) store.Adjustment {
	return store.GiveBack(&v.Checks[i], &v.Decisions[i])
}

// charged reports whether an entry was charged.
func (v *Verdict) charged(i int) bool {
	return v.Decisions[i].Allowed && !v.Decisions[i].Uncharged && v.Checks[i].Cost > 0
}

// leased returns adjustments for the charges that last until the request is over.
func (v *Verdict) leased() (back []store.Adjustment) {
	for i := range v.Checks {
		if v.Checks[i].LeaseID != "" && v.charged(i) {
			back = append(back, v.giveBack(i))
		}
	}
	return back
}

// unserved are the charges to give back, except for turns, if the handlers behind do not get the
// request: those that last until it is over, those that its response decides on, and turns in queues
// of dry runs.
func (v *Verdict) unserved() (back []store.Adjustment) {
	for i := range v.Checks {
		dry := i >= v.Enforced && v.Decisions[i].Delay > 0
		z := v.Entries[i].Zone
		if v.charged(i) && !v.queues(i) && (v.Checks[i].LeaseID != "" || dry || z.Charge.Matcher() != nil) {
			back = append(back, v.giveBack(i))
		}
	}
	return back
}

// returnDryRuns gives back what dry runs have charged for a request that other zones refuse. If
// the dry runs were enforced, the request would have cost nothing in them either.
func (v *Verdict) returnDryRuns(s pool.Session) {
	var back []store.Adjustment
	for i := v.Enforced; i < len(v.Checks); i++ {
		if v.charged(i) {
			back = append(back, v.giveBack(i))
		}
	}
	if len(back) > 0 {
		s.Adjust(back...)
	}
}

// bookLate books the charges that the response may change.
func (v *Verdict) bookLate(c *late.Completion) {
	for i := range v.Entries {
		z := v.Entries[i].Zone
		if z.ChargesLate() && v.Decisions[i].Allowed && (v.Checks[i].Cost > 0 || z.Charge.SaysCost()) {
			c.Book(v.wait.clock, v.asked, z, v.giveBack(i))
		}
	}
}
