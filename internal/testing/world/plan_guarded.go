package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// drawGuarded returns the plan of a seed if it is one of those for which instances decide alone about a key for which
// other rules come to hold: nil for nine seeds of ten. Few worlds have that otherwise, because the key must come
// often, from several instances, and parts of its limit must be lent for longer than a change takes to be known.
func drawGuarded(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 35))
	if r.IntN(10) != 0 {
		return nil
	}
	z := Zone{
		Algorithm: []string{"token_bucket", "fixed_window", "sliding_window_counter"}[r.IntN(3)], Overrides: true,
		Limit: algorithms.Limit{Events: 5 + r.Int64N(40), Window: time.Hour}, Lend: lend.MaxPeriod,
	}
	if r.IntN(3) == 0 { // loans are renewed while others come to hold
		z.Lend = time.Second
	}
	if r.IntN(2) == 0 {
		z.BanAfter, z.BanFor = 1+r.Int64N(3), between(r.Uint64(), 5*time.Second, 20*time.Second).Truncate(time.Microsecond)
	}
	p := &Plan{Seed: seed, Instances: 2 + r.IntN(2), Zones: []Zone{z}}
	length := between(r.Uint64(), 3*time.Second, 6*time.Second)
	for range 40 + r.IntN(60) {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Instance: r.IntN(p.Instances), Cost: 1}
		if r.IntN(5) == 0 {
			e.Cost = 1 + r.Int64N(5)
		}
		p.Events = append(p.Events, e)
	}
	if z.BanAfter == 0 || r.IntN(3) == 0 {
		p.Events = append(p.Events, p.event(r, length/2, operators))
	}
	if r.IntN(3) == 0 {
		p.Events = append(p.Events, p.event(r, length, links))
	}
	for i := range p.Events {
		p.Events[i].Key = 0
	}
	p.sort()
	return p
}
