package world

import (
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	usage "github.com/seed-161337e5/caddyratelimit/internal/sums"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// usageWindow are the windows in which zones sum what keys use. A world is over before the first one is.
var usageWindow = zone.Usage{Length: 24 * time.Hour, Keep: 7}

// drawUsage has some zones of whole instances sum what keys use. It draws from a source of its own, so other worlds do not
// change.
func (p *Plan) drawUsage() {
	r := rand.New(rand.NewPCG(p.Seed, 37))
	for i := range p.Zones {
		if z := &p.Zones[i]; r.IntN(4) == 0 && p.Whole && !z.slots() {
			z.Usage = true
		}
	}
}

// summed reports whether a plan has zones that sum what keys use.
func (p *Plan) summed() bool {
	for i := range p.Zones {
		if p.Zones[i].Usage {
			return true
		}
	}
	return false
}

// gather has a store gather what keys use, as it does on the clock of the machine.
func gather(s *pool.Store) {
	if s.Sums == nil {
		s.Sums = usage.New(s.Store.(*seam), zap.NewNop)
	}
}
