package limiter

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/sums"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// usage is what has to be known of a request to sum what its keys use.
type usage struct {
	to        *pool.Ref // nil if it is not summed
	met       bool      // by a zone that asks for sums
	at        time.Time // when the request came
	undecided []undecided
}

// undecided is a request in a zone that lets it pass because the store does not answer.
type undecided struct {
	zone *zone.Zone
	key  string
	cost int64
}

// sumsOf returns where what keys use is summed; nil if no zone asks for that, or if the store is not a real one.
func sumsOf(c *Config) *pool.Ref {
	for _, z := range c.Zones {
		if z.Usage != nil && c.Store.Store.Sums != nil {
			return c.Store
		}
	}
	return nil
}

func (u *usage) reset() {
	clear(u.undecided)
	*u = usage{undecided: u.undecided[:0]}
}

// meet is called for each zone that the request meets.
func (u *usage) meet(z *zone.Zone) {
	if z.Usage != nil && u.to != nil && !u.met {
		u.met, u.at = true, time.Now()
	}
}

// open notes an entry that passes because the store does not answer.
func (u *usage) open(v *Verdict, i int) {
	if z := v.Entries[i].Zone; u.met && z.Usage != nil {
		u.undecided = append(u.undecided, undecided{z, v.Checks[i].Key, v.Checks[i].Cost})
	}
}

func (u *usage) add(z *zone.Zone, key string, c sums.Counts) { u.to.AddUsage(z.WindowOf(u.at), key, c) }

// change returns what notes that a request costs more or less than was booked; nil if it does not have to be noted.
func (u *usage) change(z *zone.Zone, key string) func(cost int64) {
	if !u.met || z.Usage == nil {
		return nil
	}
	to, window := u.to, z.WindowOf(u.at)
	return func(cost int64) { to.AddUsage(window, key, sums.Counts{Cost: cost}) }
}

// countUsage adds a request to what its keys have used.
func (v *Verdict) countUsage() {
	passes := v.Passes()
	if passes {
		for _, u := range v.usage.undecided {
			v.usage.add(u.zone, u.key, sums.Counts{Requests: 1, Cost: u.cost})
		}
	}
	for i := range v.Entries {
		e, c := &v.Entries[i], &v.Checks[i]
		switch o := e.Outcome; {
		case e.Zone.Usage == nil:
		case o.Refused(), o == outcome.DryRun:
			v.usage.add(e.Zone, c.Key, sums.Counts{Refused: 1})
		case passes && (o == outcome.Allowed || o == outcome.Local || o == outcome.Over):
			v.usage.add(e.Zone, c.Key, sums.Counts{Requests: 1, Cost: c.Cost})
		}
	}
}
