package world

import (
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Shrink cuts a plan whose world breaks something to less that breaks the same promise: fewer events, instances and zones,
// and simpler numbers. A plan is broken if broken returns violations. Shrink ends after about as long as patience. If
// nothing is broken, the plan is returned as it is.
func Shrink(p *Plan, broken func(*Plan) []string, patience time.Duration) *Plan {
	violations := broken(p)
	if len(violations) == 0 {
		return p
	}
	s := &shrinker{least: p, same: sameness(violations[0]), broken: broken, until: time.Now().Add(patience)}
	for s.progress = true; s.progress; {
		s.progress = false
		s.fewerEvents()
		s.fewerZones()
		s.rounder()
		for _, field := range []string{"Zones", "Instances", "Seed", "Events"} {
			s.simpler(func(p *Plan) reflect.Value { return reflect.ValueOf(p).Elem().FieldByName(field) })
		}
	}
	return s.least
}

// shrinker has the least plan found so far.
type shrinker struct {
	least    *Plan
	same     string // what it breaks
	broken   func(*Plan) []string
	until    time.Time
	progress bool
}

var numbers = regexp.MustCompile(`\d+(\.\d+)?((ns|µs|ms|s|m|h)\d*)*`)

// sameness is what violations have in common that are of the same kind.
func sameness(violation string) string { return numbers.ReplaceAllString(violation, "N") }

// try takes a plan if it breaks the same.
func (s *shrinker) try(p *Plan) bool {
	p.sort()
	if time.Now().After(s.until) || reflect.DeepEqual(p, s.least) || !p.valid() {
		return false
	}
	if !slices.ContainsFunc(s.broken(p), func(v string) bool { return sameness(v) == s.same }) {
		return false
	}
	s.least, s.progress = p, true
	return true
}

func (p *Plan) clone() *Plan {
	c := *p
	c.Events, c.Zones = slices.Clone(p.Events), slices.Clone(p.Zones)
	return &c
}

// valid reports whether a plan is one that could have been drawn, as far as shrinking can leave that.
func (p *Plan) valid() bool {
	for _, z := range p.Zones {
		_, err := z.rule("z")
		if err != nil || z.Limit.Events < 1 || z.BanAfter > 0 && z.BanFor < time.Second || z.slots() && z.Limit.Lease != slotLease {
			return false
		}
	}
	return p.Instances > 0 && !slices.ContainsFunc(p.Events, func(e Event) bool {
		slots := e.Kind == Take && p.Zones[e.Zone].slots()
		rules := slices.Contains([]Kind{Override, Clear, Network, ClearNetwork}, e.Kind)
		sets := slices.Contains([]Kind{Override, Network}, e.Kind) && e.Sort == ""
		return rules && (!p.Zones[e.Zone].Overrides || e.Cost == 0) || sets || e.Cost < 0 || e.Delta < -e.Cost || e.Kind == Take && e.Cost == 0 && e.Delta != 0 ||
			slots && e.Delta != -e.Cost || e.For < 0 || e.Instance >= p.Instances
	})
}

// fewerEvents leaves out as many events as it can: first many at once, then one by one.
func (s *shrinker) fewerEvents() {
	for size := (len(s.least.Events) + 1) / 2; size > 0; size /= 2 {
		for from := len(s.least.Events) - size; from > -size; from -= size {
			c := s.least.clone()
			c.Events = slices.Delete(c.Events, max(0, from), min(from+size, len(c.Events)))
			s.try(c)
		}
	}
}

// fewerZones leaves out zones. Events that are left there move to the first.
func (s *shrinker) fewerZones() {
	for zone := len(s.least.Zones) - 1; zone >= 0 && len(s.least.Zones) > 1; zone-- {
		c := s.least.clone()
		c.Zones = slices.Delete(c.Zones, zone, zone+1)
		for i := range c.Events {
			switch e := &c.Events[i]; {
			case e.Zone == zone:
				e.Zone = 0
			case e.Zone > zone:
				e.Zone--
			}
		}
		s.try(c)
	}
}

// rounder has events be at round times, and soon, and messages take equally long.
func (s *shrinker) rounder() {
	for _, gap := range roundTimes {
		c := s.least.clone()
		c.Even = true
		for i := range c.Events {
			c.Events[i].At = time.Duration(i) * gap
		}
		if reflect.DeepEqual(c, s.least) || s.try(c) {
			return
		}
	}
}

var roundTimes = []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// simpler tries simpler values of a part of the plan, one after the other.
func (s *shrinker) simpler(part func(*Plan) reflect.Value) {
	switch v := part(s.least); v.Kind() {
	case reflect.Struct:
		for n := range v.NumField() {
			if v.Type().Field(n).Name != "At" { // or the order of events would change
				s.simpler(func(p *Plan) reflect.Value { return part(p).Field(n) })
			}
		}
	case reflect.Slice:
		for n := range v.Len() {
			s.simpler(func(p *Plan) reflect.Value { return part(p).Index(n) })
		}
	default:
		for again := true; again; {
			again = slices.ContainsFunc(simplerThan(part(s.least)), func(v reflect.Value) bool {
				c := s.least.clone()
				part(c).Set(v.Convert(part(c).Type()))
				c.settle()
				return s.try(c)
			})
		}
	}
}

// settle has slots be given back as they were taken.
func (p *Plan) settle() {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == Take && p.Zones[e.Zone].slots() {
			e.Delta = -e.Cost
		}
	}
}

// simplerThan returns simpler values of a field, the simplest first.
func simplerThan(v reflect.Value) (all []reflect.Value) {
	_, noName := algorithms.Get(v.String())
	switch {
	case v.IsZero():
	case v.Kind() == reflect.Bool, v.Type() == reflect.TypeFor[string]() && noName != nil:
		return []reflect.Value{reflect.Zero(v.Type())}
	case v.CanUint():
		for seed := range min(3, v.Uint()-1) {
			all = append(all, reflect.ValueOf(seed+1))
		}
	case v.CanInt():
		is, candidates := v.Int(), []int64{0, 1, 2}
		if v.Type() == reflect.TypeFor[time.Duration]() {
			candidates = []int64{0, int64(time.Hour)}
			for to := time.Second; to >= time.Microsecond; to /= 10 {
				candidates = append(candidates, int64(to), int64(time.Duration(is).Truncate(to)))
			}
		}
		for _, c := range append(candidates, is/2) {
			if size := max(is, -is); c < size && -c < size {
				all = append(all, reflect.ValueOf(c))
			}
		}
	}
	return all
}
