package caddyratelimit

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lateCharge is a charge that the response may change.
type lateCharge struct {
	zone   *zone.Zone
	charge store.Adjustment // Delta is to be filled in
	open   bool             // the response has not said yet whether it counts
	unpaid bool             // nor what it has cost
}

// lateCharges are those that the response may change.
func (a *attempt) lateCharges() (late []lateCharge) {
	if !a.late {
		return nil
	}
	for i, z := range a.zones {
		if z.ChargesLate && a.decisions[i].Allowed && (a.checks[i].Cost > 0 || z.CostHeader != "") {
			late = append(late, lateCharge{
				zone: z, charge: a.correction(i),
				open: z.ChargeOnResponse != nil, unpaid: z.CostHeader != "",
			})
		}
	}
	return late
}

// judge gives back what a response of this status and these header fields is not
// charged for. Where the client has left without a response, it cannot be known what it
// would have been, so the charge stands.
func (h *hold) judge(status int, header http.Header) {
	for i := range h.late {
		c := &h.late[i]
		if !c.open {
			continue
		}
		c.open = false
		m := c.zone.ChargeOnResponse
		unknown := status == statusClientClosedRequest && !slices.Contains(m.StatusCode, status)
		if unknown || m.Match(status, header) {
			continue
		}
		c.unpaid = false
		if c.charge.Cost > 0 {
			h.use.Adjust(c.charge)
		}
	}
}

// stand leaves the charges as they are, whatever the response will be.
func (h *hold) stand() {
	for i := range h.late {
		h.late[i].open = false
	}
}

// collect reads in the header what the request has cost.
func (h *hold) collect(header http.Header) {
	for i := range h.late {
		c := &h.late[i]
		if !c.unpaid {
			continue
		}
		values := header[c.zone.CostHeader]
		if len(values) == 0 {
			values = header[http.TrailerPrefix+c.zone.CostHeader]
		}
		if len(values) == 0 {
			continue
		}
		cost, err := lateCost(values)
		if err != nil {
			c.unpaid = false
			if c.zone.UnclearCost.Allow() {
				logging.Logger().Warn("the response does not say what the request has cost; what was booked stands",
					zap.String("zone", c.zone.Name), zap.String("cost_header", c.zone.CostHeader), zap.Error(err))
			}
			continue
		}
		h.pay(c, cost)
	}
}

// breakOff charges for responses that ended before they said what the request has cost.
func (h *hold) breakOff() {
	for i := range h.late {
		if c := &h.late[i]; c.unpaid && c.zone.CostBrokenOff != nil {
			h.pay(c, *c.zone.CostBrokenOff)
		}
	}
}

// pay settles the difference of a cost to what was booked.
func (h *hold) pay(c *lateCharge, cost int64) {
	c.unpaid = false
	settled := c.charge
	if settled.Delta = cost - c.charge.Cost; settled.Delta != 0 {
		h.use.Adjust(settled)
	}
}

// lateCost reads what an upstream says of a request's cost.
func lateCost(values []string) (int64, error) {
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
