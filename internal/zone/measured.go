package zone

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/estimate"
)

// Measured is what is needed to measure the cost of a request.
type Measured struct {
	Kind  estimate.Kind // of the request
	Least int64         // that it costs
}

// estimate books what such requests have cost on average. It books no more than the limit can ever allow, because such a
// request would be refused forever, although it may be short.
func (z *Zone) estimate(c *Check, r *http.Request) {
	c.Measured = Measured{Kind: estimate.KindOf(c.Key, r.Method, r.URL.Path), Least: c.Cost}
	if c.Cost == 0 { // by a placeholder, so the request costs nothing
		return
	}
	booked, known := z.Stats.Estimates.Table().Cost(c.Measured.Kind)
	if !known {
		booked = z.CostMeasured.First
	}
	if most := c.Policy.MaxCost(); most > 0 {
		booked = min(booked, most)
	}
	c.Cost = z.CostMeasured.Within(booked, c.Measured.Least)
}
