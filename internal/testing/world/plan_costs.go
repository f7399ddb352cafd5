package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/cost"
)

// Costs is what a zone of whole instances reads or measures, beside what a header of the request says.
type Costs struct {
	Asks       string // for what the bodies of requests ask: asksTokens or asksCalls. Empty: they are not read
	Unreadable int64  // what a request costs whose body cannot be read; 0: it is refused

	Measures       string // what is measured of a response: see [cost.Measured]. Empty: nothing
	Per, First, Up int64
}

// What the bodies of requests ask for.
const (
	asksTokens = "tokens" // a number of them
	asksCalls  = "calls"  // so many calls
)

// drawCosts draws what zones read of bodies, which all zones read alike, or measure of responses.
func (p *Plan) drawCosts(r *rand.Rand) {
	asks := ""
	if r.IntN(4) == 0 {
		asks = []string{asksTokens, asksCalls}[r.IntN(2)]
	}
	for i := range p.Zones {
		switch z := &p.Zones[i]; {
		case z.slots():
		case asks != "":
			z.Asks, z.Unreadable = asks, r.Int64N(3)
		case r.IntN(5) == 0:
			z.Body, z.Measures, z.Up = false, []string{cost.UpstreamTime, cost.ResponseTime, cost.Bytes}[r.IntN(3)], 3+r.Int64N(10)
			z.First, z.Per = 1+r.Int64N(z.Up), 50<<r.IntN(6)
			if z.Measures == cost.Bytes {
				z.Per = 1 + r.Int64N(6)
			}
		}
	}
}

// valid reports whether a zone could have these costs.
func (c *Costs) valid() bool {
	return c.Measures == "" || c.Per > 0 && c.First > 0 && c.First <= c.Up && c.Up >= maxCost
}

// maxCost is what a request costs at most before its response.
const maxCost = 3

// measured returns what a response costs that has taken some time and some bytes, where the request costs at least so much.
func (z *Zone) measured(took time.Duration, bytes, least int64) int64 {
	m := cost.Measured{Of: z.Measures, Per: z.Per, UpTo: z.Up}
	return m.Cost(took, bytes, least)
}

// asks reports whether a plan has zones that read the bodies of requests.
func (p *Plan) asks() bool {
	return slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.Asks != "" })
}

// measures reports whether a plan has zones that measure responses.
func (p *Plan) measures() bool {
	return slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.Measures != "" })
}
