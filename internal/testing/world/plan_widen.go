package world

import (
	"math/rand/v2"
	"slices"
	"time"
)

// drawWidening has the bans of a zone widen to networks, in some worlds whose keys are addresses: some of these earn bans, others may
// pass, and requests come until the ban of the network is over. It draws from a source of its own, so other worlds do not change.
func (p *Plan) drawWidening() {
	r := rand.New(rand.NewPCG(p.Seed, 39))
	number := r.IntN(len(p.Zones))
	z := &p.Zones[number]
	if p.Addresses == 0 || z.Over || z.queues() || z.slots() || r.IntN(2) == 0 {
		return
	}
	z.widen(r)
	calm, polite := r.IntN(3) == 0, r.IntN(2)
	p.Events = slices.DeleteFunc(p.Events, func(e Event) bool { return calm && operations[e.Kind].sort != requests })
	const begins, meanwhile, lasts = 3 * time.Second, 7 * time.Second, 20 * time.Second
	draw := func(from, to time.Duration, key int) {
		e := Event{At: between(r.Uint64(), from, to), Kind: Request, Instance: r.IntN(p.Instances), Zone: number, Key: key, Cost: 1}
		if p.Zones[number].Asks == "" && r.IntN(4) == 0 {
			e.Zone = -1
		}
		p.Events = append(p.Events, e)
	}
	for i := range p.Events {
		if e := &p.Events[i]; polite == 1 && e.Key == politeKey && operations[e.Kind].sort == requests {
			e.Key++ // which is in no network
		}
	}
	for key := range politeKey + r.IntN(2-polite) {
		from := time.Duration(0)
		if r.IntN(6) == 0 {
			from = between(r.Uint64(), 0, lasts/2) // others are banned no longer, perhaps
		}
		for range z.Limit.Events + z.BanAfter + r.Int64N(3) {
			draw(from, from+begins, key)
		}
	}
	for range min(z.Limit.Events, r.Int64N(3)) * int64(polite) {
		draw(begins, meanwhile, politeKey)
	}
	for range 6 + r.IntN(8) {
		draw(meanwhile, lasts, r.IntN(p.keys()))
	}
	for range r.IntN(3) {
		e := Event{At: between(r.Uint64(), 0, lasts), Kind: []Kind{ClearNetwork, ClearNetwork, Network, Unban, Override, Reset}[r.IntN(6)], Instance: r.IntN(p.Instances)}
		drawOverride(r, p, &e, begins)
		if e.Zone = number; !calm {
			p.Events = append(p.Events, e)
		}
	}
	z.WidenDryRun = r.IntN(6) == 0
}

// politeKey is a key of the network that perhaps is never refused.
const politeKey = 2

// widen has a zone ban keys soon, and their network with two or three of them. What a config excludes beside that goes.
func (z *Zone) widen(r *rand.Rand) {
	z.Overrides, z.MaxWait, z.Limit.MaxWait, z.DryRun, z.Enforced = true, 0, 0, false, 0
	z.Limit.Events, z.Limit.Window = 1+r.Int64N(3), time.Hour
	z.BanAfter, z.BanFor = 1+r.Int64N(2), between(r.Uint64(), 3*time.Second, 15*time.Second).Truncate(time.Microsecond)
	z.WidenFrom, z.Innocent = []int{2, 2, 3}[r.IntN(3)], r.IntN(2)
	if _, err := z.rule("z"); err != nil {
		z.Lend = 0 // of so little
	}
}
