package linear

import (
	"hash/maphash"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// kind is what an operation does.
type kind int

const (
	take    kind = iota // decide checks
	adjust              // change a charge
	reset               // make a key new
	setTime             // set the store's clock
	set                 // set or clear an override
)

// input is what an operation asks for.
type input struct {
	kind   kind
	zones  []int         // of adjust, reset and set it is one
	checks []store.Check // of take, one for each zone
	adjust store.Adjustment
	now    int64 // of setTime

	override *store.PreparedOverride // of set; nil clears it
}

// output is what an operation answers. One whose answer was lost has none.
type output struct {
	lost      bool
	decisions []algorithms.Decision // of take
	changed   bool                  // of adjust
}

// state is all that a store knows of one key, as a value that does not change.
type state struct {
	now   int64
	zones [maxZones]zone
}

// zone is the state of the key in one zone. Which part is in use depends on the algorithm.
type zone struct {
	numbers algorithms.State
	since   int64 // when they began; 0: nothing was charged
	log     algorithms.Log
	held    []lease
	ban     algorithms.State

	override *store.PreparedOverride // what an operator has set
}

// lease is a charge of a Leaser.
type lease struct {
	hold       string
	made, cost int64
}

// step carries an operation out as a sequential store with one key does: with the pure functions of packages store and
// algorithms, at the time that the store's clock was set to. It reports whether the answer is the right one.
//
// If the clock is the store's own, each decision tells the time, which must not go back from one operation to the next.
func (s *state) step(in *input, out *output, ownTime bool) (bool, *state) {
	next := *s
	var z *zone
	if len(in.zones) > 0 {
		z = &next.zones[in.zones[0]]
	}
	switch in.kind {
	case setTime:
		next.now = in.now
	case reset:
		*z = zone{override: z.override}
	case set:
		z.override = in.override
	case adjust:
		before := z.numbers
		z.adjust(s.now, &in.adjust)
		if in.adjust.Rule.Counter() != nil && !out.lost {
			return out.changed == (z.numbers != before), &next
		}
	case take:
		if ownTime && !out.lost {
			if next.now = out.decisions[0].At; next.now < s.now {
				return false, nil
			}
		}
		decisions := next.take(in)
		if !out.lost && !slices.Equal(decisions, out.decisions) {
			return false, nil
		}
	}
	return true, &next
}

// take decides all checks, and charges them if they pass: what [store.Store] says of Take.
func (s *state) take(in *input) []algorithms.Decision {
	decisions := make([]algorithms.Decision, len(in.checks))
	asked := make([]store.Asked, len(in.checks))
	for i := range in.checks {
		asked[i] = s.zones[in.zones[i]].ask(&in.checks[i], s.now)
		asked[i].Decision = &decisions[i]
	}
	store.Decide(s.now, asked)
	for i := range asked {
		s.zones[in.zones[i]].keep(&asked[i], s.now)
	}
	return decisions
}

// ask returns a check with what the zone has of its key.
func (z *zone) ask(c *store.Check, now int64) store.Asked {
	a := store.Asked{Check: c, Params: c.Rule.At(now).Params, State: z.numbers, Ban: z.ban}
	if z.override != nil {
		a.Overridden(z.override, -1)
	}
	switch of := c.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		a.Log = z.log.Clone()
	case algorithms.Leaser:
		a.Leases = z.leases(of, a.Params)
	}
	return a
}

// keep keeps what has changed.
func (z *zone) keep(a *store.Asked, now int64) {
	if a.BanLife > 0 {
		z.ban = a.NextBan
	}
	if !a.Charged {
		return
	}
	switch of := a.Check.Rule.Algorithm().(type) {
	case algorithms.Counter:
		z.numbers = a.Next
		z.begin(now)
	case algorithms.Recorder:
		of.Record(a.Log, a.Params, now, a.Check.Cost, 0)
		z.log = *a.Log
	case algorithms.Leaser:
		latest := now - a.Check.Rule.Limit().Lease.Microseconds()
		ended := func(l lease) bool { return l.made <= latest || l.hold == a.Check.LeaseID }
		z.held = append(slices.DeleteFunc(slices.Clone(z.held), ended), lease{a.Check.LeaseID, now, a.Check.Cost})
	}
}

// adjust changes a charge.
func (z *zone) adjust(now int64, to *store.Adjustment) {
	prepared, _ := to.Rule.ChargedBy(to.Override, now)
	switch a := to.Rule.Algorithm().(type) {
	case algorithms.Counter:
		if to.OfBefore(z.since) {
			return
		}
		before := z.numbers
		if z.numbers = a.Adjust(before, prepared.Params, now, to.At, to.Turn, to.Delta); z.numbers != before {
			z.begin(now)
		}
	case algorithms.Recorder:
		z.log = *z.log.Clone()
		a.Adjust(&z.log, prepared.Params, now, to.At, to.Delta)
	case algorithms.Leaser:
		back := func(l lease) bool { return l.hold == to.LeaseID && l.cost <= -to.Delta }
		z.held = slices.DeleteFunc(slices.Clone(z.held), back)
	}
}

// begin notes when the numbers began, if they were new.
func (z *zone) begin(now int64) {
	if z.since == 0 || z.since > now {
		z.since = now
	}
}

// leases lends again all that is held.
func (z *zone) leases(a algorithms.Leaser, p algorithms.Params) *algorithms.Leases {
	l := new(algorithms.Leases)
	for _, one := range z.held {
		a.Lease(l, p, one.made, one.cost, one.hold)
	}
	return l
}

func (s *state) equal(other *state) bool {
	if s.now != other.now {
		return false
	}
	for i := range s.zones {
		a, b := &s.zones[i], &other.zones[i]
		if a.numbers != b.numbers || a.since != b.since || a.ban != b.ban || a.override != b.override ||
			!slices.Equal(a.held, b.held) || !sameLog(&a.log, &b.log) {
			return false
		}
	}
	return true
}

func sameLog(a, b *algorithms.Log) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if a.At(i) != b.At(i) || a.Events(i, i+1) != b.Events(i, i+1) {
			return false
		}
	}
	return true
}

var seed = maphash.MakeSeed()

// hash leaves out what is slow to hash.
func (s *state) hash() uint64 {
	h := uint64(s.now)
	for i := range s.zones {
		z := &s.zones[i]
		h = h*31 + maphash.Comparable(seed, z.numbers)
		h = h*31 + uint64(len(z.held)+z.log.Len())
	}
	return h
}
