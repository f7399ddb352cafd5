package world

import (
	"regexp"
	"slices"
	"time"
)

// Shrink cuts a plan whose world breaks something to fewer events and zones that break the same promise. A plan is broken if
// broken returns violations. Shrink ends after about as long as patience. If nothing is broken, the plan is returned as it is.
func Shrink(p *Plan, broken func(*Plan) []string, patience time.Duration) *Plan {
	violations := broken(p)
	if len(violations) == 0 {
		return p
	}
	same, until := sameness(violations[0]), time.Now().Add(patience)
	try := func(without func(c *Plan)) {
		c := *p
		c.Events, c.Zones = slices.Clone(p.Events), slices.Clone(p.Zones)
		without(&c)
		if time.Now().Before(until) && slices.ContainsFunc(broken(&c), func(v string) bool { return sameness(v) == same }) {
			p = &c
		}
	}
	for before := -1; before != len(p.Events); { // until a round leaves out nothing more
		before = len(p.Events)
		for size := (before + 1) / 2; size > 0; size /= 2 {
			for from := len(p.Events) - size; from > -size; from -= size {
				try(func(c *Plan) { c.Events = slices.Delete(c.Events, max(0, from), min(from+size, len(c.Events))) })
			}
		}
		for zone := len(p.Zones) - 1; zone >= 0 && len(p.Zones) > 1; zone-- {
			try(func(c *Plan) { c.leaveOut(zone) })
		}
		try(func(c *Plan) { c.Even = true })
	}
	return p
}

var numbers = regexp.MustCompile(`\d+(\.\d+)?((ns|µs|ms|s|m|h)\d*)*`)

// sameness is what violations have in common that are of the same kind.
func sameness(violation string) string { return numbers.ReplaceAllString(violation, "N") }

// leaveOut leaves out a zone, and the events that are about it alone.
func (p *Plan) leaveOut(zone int) {
	p.Zones = slices.Delete(p.Zones, zone, zone+1)
	p.Events = slices.DeleteFunc(p.Events, func(e Event) bool { return e.Zone == zone && operations[e.Kind].ask != nil })
	for i := range p.Events {
		if p.Events[i].Zone > zone {
			p.Events[i].Zone--
		}
	}
}
