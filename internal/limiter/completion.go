package limiter

import (
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Completion is what remains to be done when a request is over: slots to give back, and charges
// that depend on the response. It keeps the store open until then.
type Completion struct {
	// Strips are headers that the client must not see.
	Strips []string

	late.Charges // what the response may change

	session     pool.Session // has no store if nothing was charged
	adjustments []store.Adjustment
}

// complete returns the completion of a request that may pass.
func (v *Verdict) complete(s pool.Session) *Completion {
	c := &Completion{session: s, adjustments: v.held(), Strips: v.strips}
	v.bookLate(&c.Charges, s.Store)
	return c
}

// giveBack returns the adjustment that gives back all of a charge.
func (v *Verdict) giveBack(i int) store.Adjustment {
	return store.GiveBack(&v.Checks[i], &v.Decisions[i])
}

// charged reports whether an entry was charged.
func (v *Verdict) charged(i int) bool { return v.Decisions[i].Allowed && v.Checks[i].Cost > 0 }

// held returns adjustments for the charges that last until the request is over.
func (v *Verdict) held() (back []store.Adjustment) {
	for i := range v.Checks {
		if v.Checks[i].Hold != "" && v.charged(i) {
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
		if v.charged(i) && !v.queues(i) && (v.Checks[i].Hold != "" || dry || v.Entries[i].Zone.ChargeOnResponse != nil) {
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
func (v *Verdict) bookLate(charges *late.Charges, in late.Store) {
	if !v.late {
		return
	}
	for i := range v.Entries {
		z := v.Entries[i].Zone
		saysCost := z.CostHeader != "" || z.CostResponse != nil
		if z.ChargesLate() && v.Decisions[i].Allowed && (v.Checks[i].Cost > 0 || saysCost) {
			charges.Book(z, v.giveBack(i), in)
		}
	}
}

// Release gives back slots. It must be called when the next handlers have returned or panicked.
// After it, now or later, End or Abandon must be called.
func (c *Completion) Release() {
	if c.session.Store != nil {
		c.session.Adjust(c.adjustments...)
	}
}

// End ends the use of the store.
func (c *Completion) End() {
	if c.session.Store != nil {
		c.session.End()
	}
}

// Abandon ends the use of the store. Charges that the response has not changed yet stay as they
// are.
func (c *Completion) Abandon() {
	c.Drop()
	c.End()
}
