package linear

import (
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"

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
	checks []store.Check // of take
	zones  []int         // the zones of the checks; of adjust, reset and set the one zone
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
	log     *algorithms.Log
	held    []lease
	ban     algorithms.State

	override *store.PreparedOverride // what an operator has set
}

// lease is a charge of a Leaser.
type lease struct {
	hold             string
	made, ends, cost int64
}

// model is a sequential store with one key: it carries out one operation after the other, with the
// pure functions of package algorithms, at the time that the store's clock was set to.
type model struct {
	rules []*store.Rule

	// ownTime says that the clock is the store's own. Then each decision tells the time, which must
	// not go back from one operation to the next.
	ownTime bool
}

// step carries an operation out, and reports whether the answer is the right one.
func (m *model) step(s *state, in *input, out *output) (bool, *state) {
	next := *s
	switch in.kind {
	case setTime:
		next.now = in.now
	case reset:
		next.zones[in.zones[0]] = zone{override: s.zones[in.zones[0]].override}
	case set:
		next.zones[in.zones[0]].override = in.override
	case adjust:
		z := &next.zones[in.zones[0]]
		*z = z.adjusted(m.rules[in.zones[0]], s.now, &in.adjust)
		if _, counts := in.adjust.Rule.Algorithm().(algorithms.Counter); counts && !out.lost {
			return out.changed == (z.numbers != s.zones[in.zones[0]].numbers), &next
		}
	case take:
		if m.ownTime && !out.lost {
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
		a.Log = z.clone()
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
		z.log = a.Log
	case algorithms.Leaser:
		ended := func(l lease) bool { return l.ends <= now || l.hold == a.Check.LeaseID }
		z.held = append(slices.DeleteFunc(slices.Clone(z.held), ended),
			lease{a.Check.LeaseID, now, now + leaseOf(a.Check.Rule), a.Check.Cost})
	}
}

// adjusted returns the state after an adjustment.
func (z *zone) adjusted(rule *store.Rule, now int64, to *store.Adjustment) zone {
	prepared, _ := rule.ChargedBy(to.Override, now)
	next, p := *z, prepared.Params
	switch a := rule.Algorithm().(type) {
	case algorithms.Counter:
		if to.OfBefore(z.since) {
			return next
		}
		if next.numbers = a.Adjust(z.numbers, p, now, to.At, to.Turn, to.Delta); next.numbers != z.numbers {
			next.begin(now)
		}
	case algorithms.Recorder:
		next.log = z.clone()
		a.Adjust(next.log, p, now, to.At, to.Delta)
	case algorithms.Leaser:
		next.held = slices.DeleteFunc(slices.Clone(z.held), func(l lease) bool { return l.hold == to.LeaseID && l.cost <= -to.Delta })
	}
	return next
}

// begin notes when the numbers began, if they were new.
func (z *zone) begin(now int64) {
	if z.since == 0 || z.since > now {
		z.since = now
	}
}

func (z *zone) clone() *algorithms.Log {
	if z.log == nil {
		return new(algorithms.Log)
	}
	return z.log.Clone()
}

// leases lends again all that is held.
func (z *zone) leases(a algorithms.Leaser, p algorithms.Params) *algorithms.Leases {
	l := new(algorithms.Leases)
	for _, one := range z.held {
		a.Lease(l, p, one.made, one.cost, one.hold)
	}
	return l
}

func leaseOf(rule *store.Rule) int64 { return rule.Limit().Lease.Microseconds() }

func (s *state) equal(other *state) bool {
	if s.now != other.now {
		return false
	}
	for i := range s.zones {
		a, b := &s.zones[i], &other.zones[i]
		if a.numbers != b.numbers || a.since != b.since || a.ban != b.ban || a.override != b.override || !slices.Equal(a.held, b.held) || !sameLog(a.log, b.log) {
			return false
		}
	}
	return true
}

func sameLog(a, b *algorithms.Log) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.Len() != b.Len() {
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
		h = h*31 + uint64(len(z.held))
		if z.log != nil {
			h = h*31 + uint64(z.log.Len())
		}
	}
	return h
}

// porcupine returns the model in the checker's form. The first state is that of a new key at a time.
func (m *model) porcupine(start int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return &state{now: start} },
		Step: func(s, in, out any) (bool, any) { return m.step(s.(*state), in.(*input), out.(*output)) },
		Equal: func(a, b any) bool {
			return a.(*state).equal(b.(*state))
		},
		Hash: func(s any) uint64 { return s.(*state).hash() },
	}
}
