package world

import (
	"math/rand/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// drawOver has some zones of whole instances let pass what is above their limit. It draws from a source of its own, so
// other worlds do not change.
func (p *Plan) drawOver() {
	r := rand.New(rand.NewPCG(p.Seed, 36))
	for i := range p.Zones {
		if z := &p.Zones[i]; r.IntN(4) == 0 && p.Whole && !z.queues() {
			z.letPass()
		}
	}
}

// letPass has a zone let pass what is above its limit, without what a config excludes beside that.
func (z *Zone) letPass() {
	z.Over, z.DryRun, z.Enforced, z.BanAfter, z.BanFor, z.MaxWait = true, false, 0, 0, 0, 0
	if z.OnError == zone.DenyOnError {
		z.OnError = zone.AllowOnError
	}
}

// lenient reports whether a zone is asked by itself at times, and charges whatever others decide.
func (z *Zone) lenient() bool { return z.Over || z.refusesSome() }
