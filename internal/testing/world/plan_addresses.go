package world

import (
	"math/rand/v2"
	"time"
)

// drawAddresses has the keys of some worlds with whole instances be addresses, about which networks decide that
// operators ban, exempt and limit. It draws from a source of its own, so other worlds do not change.
func (p *Plan) drawAddresses() {
	r := rand.New(rand.NewPCG(p.Seed, 38))
	if !p.Whole || r.IntN(2) == 0 {
		return
	}
	p.Addresses = []int{4, 4, 6}[r.IntN(3)]
	length, hot := time.Second, true
	for i := range p.Events {
		e := &p.Events[i]
		length, hot = max(length, min(e.At, 4*time.Second)), hot && e.Key == 0
	}
	p.Zones[r.IntN(len(p.Zones))].Overrides = true
	for i := range p.Zones {
		p.Zones[i].Overrides = p.Zones[i].Overrides || r.IntN(2) == 0
	}
	for range 2 + r.IntN(4) {
		e := Event{At: between(r.Uint64(), 0, length), Kind: []Kind{Network, Network, Network, ClearNetwork}[r.IntN(4)], Instance: r.IntN(p.Instances)}
		drawOverride(r, p, &e, length)
		p.Events = append(p.Events, e)
	}
	for range 4 + r.IntN(8) { // after all have learned of it
		e := Event{At: between(r.Uint64(), 0, length+8*time.Second), Kind: Request, Instance: r.IntN(p.Instances)}
		drawRequest(r, p, &e, length)
		p.Events = append(p.Events, e)
	}
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case Take, Request:
			if r.IntN(2) == 0 && !hot {
				e.Key = r.IntN(p.keys())
			}
		}
	}
}

// overruled are the limits that networks have for keys of a zone.
func (p *Plan) overruled(zone int) (limits []int64) {
	if p.Addresses == 0 {
		return nil
	}
	for i := range p.Events {
		if e := &p.Events[i]; e.Zone == zone && e.Sort == limited && e.Kind == Network {
			limits = append(limits, e.Cost)
		}
	}
	return limits
}
