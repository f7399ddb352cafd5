package world

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// eachZone are zones of each algorithm, with and without lend, and with what only whole instances can do.
func eachZone() (all []Zone) {
	for _, name := range algorithms.Names() {
		z := Zone{Algorithm: name, Limit: algorithms.Limit{Events: 9, Window: time.Hour}}
		if z.slots() {
			z.Limit.Window, z.Limit.Lease = 0, 10*time.Second
		}
		z.Overrides = true
		all = append(all, z)
		z.Overrides = false
		if z.lends(time.Second) {
			z.Lend = time.Second
			all = append(all, z)
		}
	}
	asks := Zone{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Enforced: 50, Asks: true}
	bans := Zone{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Hour}, Overrides: true, BanAfter: 1, BanFor: 9 * time.Second}
	return append(all, asks, bans)
}

// drawMeeting returns a plan in which a fault meets all operations in all zones.
func drawMeeting(seed uint64, fault *operation) *Plan {
	r := rand.New(rand.NewPCG(seed, 34))
	p := &Plan{Seed: seed, Instances: 2, Whole: true, Zones: eachZone()}
	if p.Addresses = 4; seed%2 == 0 {
		p.Addresses = 6
	}
	begins, lasts := 500*time.Millisecond, 400*time.Millisecond
	f := Event{Kind: fault.Kind, Instance: -1}
	for _, l := range []Layout{Single, Sentinels, Cluster} {
		if p.Layout = l; fault.fits == nil || fault.fits(p) {
			break
		}
	}
	if fault.draw != nil {
		fault.draw(r, p, &f, time.Second)
	}
	if fault.Kind == Busy {
		f.Instance = -1
	}
	f.At, f.For = begins, lasts
	p.Events = append(p.Events, f)
	for number := range p.Zones {
		for instance := range p.Instances {
			for _, at := range []time.Duration{begins - 100*time.Millisecond, begins + lasts/4, begins + lasts/2} { // and back while it is on
				kind := Take
				if number >= len(p.Zones)-2 {
					kind = Request
				}
				p.Events = append(p.Events, Event{
					At: at + between(r.Uint64(), 0, 50*time.Millisecond), Kind: kind, Instance: instance, Zone: number, Key: r.IntN(maxKeys),
					Cost: 1, Delta: -1, After: 150 * time.Millisecond,
				})
			}
		}
	}
	for _, o := range kinds(operators) {
		if o.fits != nil && !o.fits(p) {
			continue
		}
		e := Event{Kind: o.Kind, Instance: r.IntN(p.Instances)}
		if o.draw != nil {
			o.draw(r, p, &e, time.Second)
		}
		e.At = begins + between(r.Uint64(), 0, lasts)
		p.Events = append(p.Events, e)
	}
	p.sort()
	return p
}

// missing are what operators do, and the zones that nobody asks, while the fault of such a plan is on.
func (h *History) missing(fault Kind) (all []string) {
	met := make(map[string]bool)
	for i := range h.Plan.Events {
		e := &h.Plan.Events[i]
		if e.Kind != fault {
			continue
		}
		meets := func(from, to time.Duration) bool { return from <= h.began+e.At+e.For && to >= h.began+e.At }
		for j := range h.Answers {
			if a := &h.Answers[j]; meets(a.Began, a.Ended) {
				met[zoneName(a.Zone)] = true
			}
		}
		for j := range h.Plan.Events {
			if other := &h.Plan.Events[j]; meets(h.began+other.At, h.began+other.At) {
				met[string(other.Kind)] = true
			}
		}
	}
	for i := range h.Plan.Zones {
		all = append(all, zoneName(i))
	}
	for _, o := range kinds(operators) {
		all = append(all, string(o.Kind))
	}
	return slices.DeleteFunc(all, func(what string) bool { return met[what] })
}
