package world

import (
	"math/rand/v2"
	"slices"
)

// Costs is what a zone of whole instances reads of bodies, beside what a header of the request says.
type Costs struct {
	Asks bool // bodies of requests say what they cost
}

// askedField is the field of such bodies.
const askedField = "tokens"

// drawCosts draws what zones read of bodies, which all zones read alike.
func (p *Plan) drawCosts(r *rand.Rand) {
	asks := r.IntN(4) == 0
	for i := range p.Zones {
		if z := &p.Zones[i]; asks && !z.slots() {
			z.Asks = true
		}
	}
}

// asks reports whether a plan has zones that read the bodies of requests.
func (p *Plan) asks() bool {
	return slices.ContainsFunc(p.Zones, func(z Zone) bool { return z.Asks })
}
