package limiter

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// StatusClientClosedRequest is the status of a request whose client has left. Only logs show it.
const StatusClientClosedRequest = 499

// Completion is what remains to be done when a request is over: slots to give back, and charges
// that depend on the response. It keeps the store open until then.
type Completion struct {
	// Strips are headers that the client must not see.
	Strips []string

	session     pool.Session // has no store if nothing was charged
	adjustments []store.Adjustment
	late        []lateCharge
	body        *bodyCosts // nil if no charge depends on the body of the response
}

// lateCharge is a charge that the response may change.
type lateCharge struct {
	zone   *zone.Zone
	charge store.Adjustment // gives back the charge
	open   bool             // whether the response counts is not known yet
	unpaid bool             // what it costs is not known yet
	body   bodyCost
}

// complete returns the completion of a request that may pass.
func (v *Verdict) complete(s pool.Session) *Completion {
	c := &Completion{session: s, adjustments: v.held(), late: v.lateCharges(), Strips: v.strips}
	if slices.ContainsFunc(c.late, func(l lateCharge) bool { return l.body.reads }) {
		c.body = new(bodyCosts)
	}
	return c
}

// giveBack returns the adjustment that gives back all of a charge.
func (v *Verdict) giveBack(i int) store.Adjustment {
	c, d := v.Checks[i], &v.Decisions[i]
	return store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -c.Cost, Override: d.Override}
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

// lateCharges returns the charges that the response may change.
func (v *Verdict) lateCharges() (late []lateCharge) {
	if !v.late {
		return nil
	}
	for i := range v.Entries {
		z := v.Entries[i].Zone
		saysCost := z.CostHeader != "" || z.CostResponse != nil
		if z.ChargesLate() && v.Decisions[i].Allowed && (v.Checks[i].Cost > 0 || saysCost) {
			late = append(late, lateCharge{
				zone: z, charge: v.giveBack(i),
				open: z.ChargeOnResponse != nil, unpaid: z.CostHeader != "", body: bodyCost{reads: z.CostResponse != nil},
			})
		}
	}
	return late
}

// ChargesLate reports whether the response may change what the request is charged.
func (c *Completion) ChargesLate() bool { return len(c.late) > 0 }

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
	c.late = nil
	c.End()
}

// Judge gives back what a response of this status and these headers is not charged for.
// Where the client has left without a response, it cannot be known what that would have been, so
// the charge stays.
func (c *Completion) Judge(status int, header http.Header) {
	for i := range c.late {
		l := &c.late[i]
		if !l.open {
			continue
		}
		l.open = false
		m := l.zone.ChargeOnResponse
		unknown := status == StatusClientClosedRequest && !slices.Contains(m.StatusCode, status)
		if unknown {
			continue
		}
		charged := m.Match(status, header)
		l.zone.Judged.Count(status, charged)
		if charged {
			continue
		}
		l.unpaid = false
		if l.body.reads {
			l.body.reads = false
			c.settle(l, stats.CostReturned, 0)
		}
		if l.charge.Cost > 0 {
			c.session.Adjust(l.charge)
		}
	}
}

// Keep leaves the charges as they are, whatever the response will be.
func (c *Completion) Keep() {
	for i := range c.late {
		c.late[i].open = false
	}
}

// ReadCost reads from the header of the response what the request has cost.
func (c *Completion) ReadCost(header http.Header) {
	for i := range c.late {
		l := &c.late[i]
		if !l.unpaid {
			continue
		}
		values := header[l.zone.CostHeader]
		if len(values) == 0 {
			values = header[http.TrailerPrefix+l.zone.CostHeader]
		}
		if len(values) == 0 {
			continue
		}
		cost, err := parseCost(values)
		if err != nil {
			l.unpaid = false
			if l.zone.UnclearCost.Allow() {
				logging.Logger().Warn("the response does not say what the request has cost; the charge stays as it is",
					zap.String("zone", l.zone.Name), zap.String("cost_header", l.zone.CostHeader), zap.Error(err))
			}
			continue
		}
		c.pay(l, cost)
	}
}

// BrokenOff charges for a response that has ended before it said what the request has cost.
func (c *Completion) BrokenOff() {
	for i := range c.late {
		if l := &c.late[i]; l.unpaid && l.zone.CostBrokenOff != nil {
			c.pay(l, *l.zone.CostBrokenOff)
		}
	}
}

// pay charges the difference between a cost and what was charged before.
func (c *Completion) pay(l *lateCharge, cost int64) {
	l.unpaid = false
	a := l.charge
	if a.Delta = cost - l.charge.Cost; a.Delta != 0 {
		c.session.Adjust(a)
	}
}

// parseCost parses the cost of a request that an upstream has sent.
func parseCost(values []string) (int64, error) {
	if len(values) > 1 {
		return 0, fmt.Errorf("it says so %d times", len(values))
	}
	text := strings.TrimSpace(values[0])
	cost, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !limit.ValidCost(cost) {
		return 0, fmt.Errorf("it must be a whole number from 0 to %d, got %.32q", algorithms.MaxEvents, text)
	}
	return cost, nil
}
