package world

import (
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// drawGuarded returns the plan of a seed if it is one of those for which instances decide alone about a key for which
// other rules come to hold: nil for nine seeds of ten. Few worlds have that otherwise, because the key must come
// often, from several instances, and units of it must be held for longer than a change takes to be known.
func drawGuarded(seed uint64) *Plan {
	r := rand.New(rand.NewPCG(seed, 35))
	if r.IntN(10) != 0 {
		return nil
	}
	z := Zone{
		Algorithm: []string{"token_bucket", "fixed_window", "sliding_window_counter"}[r.IntN(3)], Overrides: true,
		Limit: algorithms.Limit{Events: 5 + r.Int64N(40), Window: time.Hour}, Lend: algorithms.MaxHold,
	}
	renews := r.IntN(4) == 0
	switch {
	case renews:
		z.renew(r)
	case r.IntN(3) == 0: // more is charged ahead while others come to hold
		z.Lend = time.Second
	}
	if r.IntN(2) == 0 && !renews {
		z.BanAfter, z.BanFor = 1+r.Int64N(3), between(r.Uint64(), 5*time.Second, 20*time.Second).Truncate(time.Microsecond)
	}
	p := &Plan{Seed: seed, Instances: 2 + r.IntN(2), Zones: []Zone{z}}
	length, clients := between(r.Uint64(), 3*time.Second, 6*time.Second), 40+r.IntN(60)
	if renews {
		length, clients = 3*time.Second, 2*clients
	}
	for range clients {
		e := Event{At: between(r.Uint64(), 0, length), Kind: Take, Instance: r.IntN(p.Instances), Cost: 1}
		if r.IntN(5) == 0 {
			e.Cost = 1 + r.Int64N(5)
		}
		p.Events = append(p.Events, e)
	}
	switch {
	case renews:
		p.drawChanges(r, length)
	case z.BanAfter == 0 || r.IntN(3) == 0:
		p.Events = append(p.Events, p.event(r, length/2, operators))
	}
	if r.IntN(3) == 0 {
		p.Events = append(p.Events, p.event(r, length, links))
	}
	if r.IntN(40) == 0 {
		p.drawMany(r, length)
	}
	for i := range p.Events {
		p.Events[i].Key = 0
	}
	p.sort()
	return p
}

// renew has units be charged ahead again and again: a limit that lasts for a minute at most is never held for long, and
// little of it is used here.
func (z *Zone) renew(r *rand.Rand) {
	z.Limit.Events, z.Limit.Window = 100+r.Int64N(400), between(r.Uint64(), 10*time.Second, 30*time.Second).Truncate(time.Microsecond)
	z.Lend = between(r.Uint64(), 100*time.Millisecond, time.Second).Truncate(time.Microsecond)
}

// drawChanges has operators change the rules of a key again and again, while instances ask for more of it.
func (p *Plan) drawChanges(r *rand.Rand, length time.Duration) {
	for range 2 + r.IntN(4) {
		e := Event{At: between(r.Uint64(), length/4, length), Kind: Override, Instance: r.IntN(p.Instances)}
		if r.IntN(3) == 0 {
			e.Kind = Clear
		}
		drawOverride(r, p, &e, length)
		p.Events = append(p.Events, e)
	}
	if r.IntN(2) == 0 {
		p.Events = append(p.Events, Event{Kind: Delay, Instance: -1, For: length, After: between(r.Uint64(), time.Millisecond, timeout/3)})
	}
}

// drawMany has an operator set an override for more keys at once than are noted.
func (p *Plan) drawMany(r *rand.Rand, length time.Duration) {
	e := Event{At: between(r.Uint64(), length/4, length/2), Kind: Override, Instance: r.IntN(p.Instances)}
	drawOverride(r, p, &e, length)
	e.Sort, e.For, e.Delta = banned, 0, 520
	p.Events = append(p.Events, e)
}
