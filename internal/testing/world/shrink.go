package world

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Shrink cuts a plan whose world breaks something to the least that still does: fewer events, instances and zones, and
// simpler numbers. What is broken is the same, in the same zone. A plan is broken if broken returns violations. Shrink
// ends after about as long as patience. If nothing is broken, the plan is returned as it is.
func Shrink(p *Plan, broken func(*Plan) []string, patience time.Duration) *Plan {
	violations := broken(p)
	if len(violations) == 0 {
		return p
	}
	s := &shrinker{least: p, same: sameness(violations[0]), broken: broken, until: time.Now().Add(patience)}
	for s.progress = true; s.progress && time.Now().Before(s.until); {
		s.progress = false
		s.fewerEvents()
		s.fewerZones()
		s.fewerInstances()
		s.fewerKeys()
		s.simplerTimes()
		s.simplerEvents()
		s.simplerZones()
		s.lessLuck()
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

var numbers = regexp.MustCompile(`(zone )?\d+(\.\d+)?((ns|µs|ms|s|m|h)\d*)*`)

// sameness is what violations have in common that are of the same kind and of the same zone.
func sameness(violation string) string {
	return numbers.ReplaceAllStringFunc(violation, func(number string) string {
		if number[0] == 'z' {
			return number
		}
		return "N"
	})
}

// try takes a plan if it breaks the same.
func (s *shrinker) try(p *Plan) bool { return s.tryAs(p, s.same) }

func (s *shrinker) tryAs(p *Plan, same string) bool {
	if time.Now().After(s.until) {
		return false
	}
	p.sort()
	if reflect.DeepEqual(p, s.least) || !p.valid() {
		return false
	}
	if !slices.ContainsFunc(s.broken(p), func(v string) bool { return sameness(v) == same }) {
		return false
	}
	s.least, s.same, s.progress = p, same, true
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
		if _, err := z.rule("z"); err != nil || z.Limit.Events < 1 || z.BanAfter > 0 && z.BanFor < time.Second {
			return false
		}
	}
	return !slices.ContainsFunc(p.Events, func(e Event) bool {
		slots := e.Kind == Take && p.Zones[e.Zone].slots()
		rules := slices.Contains([]Kind{Override, Clear, Network, ClearNetwork}, e.Kind)
		sets := slices.Contains([]Kind{Override, Network}, e.Kind) && e.Sort == ""
		return rules && (!p.Zones[e.Zone].Overrides || e.Cost == 0) || sets || e.Cost < 0 || e.Delta < -e.Cost || e.Kind == Take && e.Cost == 0 && e.Delta != 0 || slots && e.Delta != -e.Cost || e.For < 0
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
			c.Events[i].Zone = without(c.Events[i].Zone, zone)
		}
		s.tryAs(c, zoneNumber.ReplaceAllStringFunc(s.same, func(text string) string {
			number, _ := strconv.Atoi(text[len("zone "):])
			return "zone " + strconv.Itoa(without(number, zone))
		}))
	}
}

var zoneNumber = regexp.MustCompile(`zone \d+`)

// fewerInstances leaves out instances. Their events move to the first.
func (s *shrinker) fewerInstances() {
	for instance := s.least.Instances - 1; instance >= 0 && s.least.Instances > 1; instance-- {
		c := s.least.clone()
		c.Instances--
		for i := range c.Events {
			c.Events[i].Instance = without(c.Events[i].Instance, instance)
		}
		s.try(c)
	}
}

// fewerKeys has all ask for the first key, or for those before.
func (s *shrinker) fewerKeys() {
	for key := s.least.keys() - 1; key >= 0; key-- {
		c := s.least.clone()
		for i := range c.Events {
			c.Events[i].Key = without(c.Events[i].Key, key)
		}
		s.try(c)
	}
}

// without is what a number becomes if one is left out: that one becomes 0.
func without(number, out int) int {
	switch {
	case number == out:
		return 0
	case number > out:
		return number - 1
	}
	return number
}

// simplerTimes has events be at round times, and soon.
func (s *shrinker) simplerTimes() {
	for _, gap := range roundTimes {
		c := s.least.clone()
		for i := range c.Events {
			c.Events[i].At = time.Duration(i) * gap
		}
		if reflect.DeepEqual(c, s.least) || s.try(c) {
			return
		}
	}
	for i := range s.least.Events {
		before := time.Duration(0)
		if i > 0 {
			before = s.least.Events[i-1].At
		}
		gap := s.least.Events[i].At - before
		for _, less := range append(slices.Clone(roundTimes), gap/2) {
			if less >= gap && gap >= time.Millisecond || less == gap {
				break
			}
			c := s.least.clone()
			for j := i; j < len(c.Events); j++ {
				c.Events[j].At -= gap - less
			}
			if s.try(c) {
				break
			}
		}
		s.round(func(p *Plan) *time.Duration { return &p.Events[i].At })
	}
}

var roundTimes = []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// round rounds a time, as far as that can be.
func (s *shrinker) round(which func(*Plan) *time.Duration) {
	for _, to := range []time.Duration{time.Second, 100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond, time.Microsecond} {
		c := s.least.clone()
		if d := which(c); *d%to == 0 {
			return
		} else if *d = d.Round(to); s.try(c) {
			return
		}
	}
}

// simplerEvents has numbers of events be smaller, one after the other. Times are those of simplerTimes.
func (s *shrinker) simplerEvents() {
	for i := range s.least.Events {
		but := []string{"At", "Zone"}
		if !slices.Contains([]Kind{LoseRequests, LoseReplies, Delay}, s.least.Events[i].Kind) {
			but = append(but, "Surely") // which says something of troubles
		}
		s.simpler(func(p *Plan) reflect.Value { return reflect.ValueOf(&p.Events[i]).Elem() }, but...)
		for e := s.least.Events[i]; e.For > time.Millisecond; e = s.least.Events[i] { // the second half of it is enough
			c := s.least.clone()
			c.Events[i].At, c.Events[i].For = e.At+e.For/2, e.For/2
			if !s.try(c) {
				break
			}
			i = slices.IndexFunc(s.least.Events, func(now Event) bool { return now.Kind == e.Kind && now.For == e.For/2 })
		}
	}
}

// simplerZones has numbers of limits be smaller.
func (s *shrinker) simplerZones() {
	for i := range s.least.Zones {
		s.simpler(func(p *Plan) reflect.Value { return reflect.ValueOf(&p.Zones[i]).Elem() }, "Algorithm")
		s.simpler(func(p *Plan) reflect.Value { return reflect.ValueOf(&p.Zones[i].Limit).Elem() }, "Lease")
	}
}

// simpler tries simpler values of each field of a part of the plan, but of some.
func (s *shrinker) simpler(part func(*Plan) reflect.Value, but ...string) {
	for n := range part(s.least).NumField() {
		if slices.Contains(but, part(s.least).Type().Field(n).Name) {
			continue
		}
		for again := true; again; {
			again = slices.ContainsFunc(simplerThan(part(s.least).Field(n), part(s.least).Type().Field(n).Name == "Surely"), func(v reflect.Value) bool {
				c := s.least.clone()
				part(c).Field(n).Set(v)
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

// simplerThan returns simpler values of a field, the simplest first: of one that is true or false, the simple one.
func simplerThan(v reflect.Value, simple bool) (all []reflect.Value) {
	switch {
	case v.Kind() == reflect.Bool && v.Bool() != simple:
		return []reflect.Value{reflect.ValueOf(simple)}
	case v.Kind() == reflect.String && v.Type() == reflect.TypeFor[string]() && !v.IsZero():
		return []reflect.Value{reflect.Zero(v.Type())}
	case !v.CanInt() || v.IsZero():
		return nil
	}
	is, candidates := v.Int(), []int64{0, 1, 2}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		candidates = []int64{0, int64(time.Millisecond), int64(10 * time.Millisecond), int64(100 * time.Millisecond), int64(time.Second), int64(time.Hour)}
		for to := time.Second; to >= time.Microsecond; to /= 10 {
			candidates = append(candidates, int64(time.Duration(is).Truncate(to)))
		}
	}
	for _, c := range append(candidates, is/2) {
		if less(c, is) {
			n := reflect.New(v.Type()).Elem()
			n.SetInt(c)
			all = append(all, n)
		}
		if less(-c, is) && is < 0 {
			n := reflect.New(v.Type()).Elem()
			n.SetInt(-c)
			all = append(all, n)
		}
	}
	return all
}

// less reports whether one number is nearer to 0 than another.
func less(a, b int64) bool { return max(a, -a) < max(b, -b) }

// lessLuck has nothing depend on the seed.
func (s *shrinker) lessLuck() {
	c := s.least.clone()
	c.Even = true
	s.try(c)
	for seed := range uint64(3) {
		if seed+1 >= s.least.Seed {
			return
		}
		c := s.least.clone()
		c.Seed = seed + 1
		if s.try(c) {
			return
		}
	}
}
