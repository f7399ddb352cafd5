package world

import (
	"math/rand/v2"
	"slices"
)

// Costs is what a zone of whole instances reads of bodies, beside what a header of the request says.
type Costs struct {
	Asks       string // for what the bodies of requests ask: asksTokens or asksCalls. Empty: they are not read
	Unreadable int64  // what a request costs whose body cannot be read; 0: it is refused
}

// What the bodies of requests ask for.
const (
	asksTokens = "tokens" // a number of them
	asksCalls  = "calls"  // so many calls
)

// drawCosts draws what zones read of bodies, which all zones read alike.
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
		}
	}
}

// asks reports whether a plan has zones that read the bodies of requests.
func (p *Plan) asks() bool {
	return slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.Asks != "" })
}
