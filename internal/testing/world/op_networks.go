package world

import (
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What operators do with a network, which the event's Key numbers.
const (
	Network      Kind = "Network" // Sort is what for, as of an Override
	ClearNetwork Kind = "ClearNetwork"
)

var (
	_ = operate(operation{Kind: Network, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.setRule(e, store.Selector{Network: w.plan.network(e.Key)}, e.override())
	})})
	_ = operate(operation{Kind: ClearNetwork, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.setRule(e, store.Selector{Network: w.plan.network(e.Key)}, store.Override{})
	})})
)

// Known is what an instance knows in the end of a network.
type Known struct {
	Instance, Zone, Number int
	Kind                   store.Kind
	Limit                  int64 // of KindLimit
}

// String is which one it is.
func (k *Known) String() string {
	return fmt.Sprintf("network %d of zone %d", k.Number, k.Zone)
}

// about reports whether an operator has done something with it.
func (k *Known) about(d *Deed) bool {
	return (d.Kind == Network || d.Kind == ClearNetwork) && d.Zone == k.Zone && d.Key == k.Number
}

// readNetworks has an instance tell which networks it knows.
func (w *world) readNetworks(in *instance) {
	for zone, rule := range w.rules {
		all := in.store.Networks(rule)
		for number := range maxKeys {
			o := all.Override(w.plan.network(number))
			w.history.Networks = append(w.history.Networks, Known{in.number, zone, number, o.Kind, o.Limit.Events})
		}
	}
}

var _ = promise("all instances know the same networks, as operators have set them", (*History).networks)

// networks checks what the instances know of networks in the end: what was done last, unless Redis may have lost it. What
// an instance knows without a cause is wrong in any case.
func (h *History) networks() (violations []string) {
	for i := range h.Networks {
		known := &h.Networks[i]
		var done []Deed
		for _, d := range h.Deeds {
			if known.about(&d) {
				done = append(done, d)
			}
		}
		is := func(kind store.Kind, limit int64) bool { return known.Kind == kind && known.Limit == limit }
		causes := func(d Deed) bool { return is(h.Plan.Events[d.Event].sets()) }
		if known.Kind != store.KindNone && !slices.ContainsFunc(done, causes) {
			violations = append(violations, fmt.Sprintf("instance %d knows %v as %v, without a cause", known.Instance, known, known.Kind))
		}
		last := slices.IndexFunc(done, func(d Deed) bool {
			return !slices.ContainsFunc(done, func(other Deed) bool { return other.Failure != "" || other.Event != d.Event && other.Ended >= d.Began })
		})
		if last < 0 || h.hasLost() || len(h.clocks) > 1 {
			continue
		}
		e := &h.Plan.Events[done[last].Event]
		want, limit := e.sets()
		if e.For > 0 {
			want, limit = store.KindNone, 0 // it has ended
		}
		if !is(want, limit) {
			violations = append(violations, fmt.Sprintf("instance %d knows %v as %v (%d), and operator %d has set %v", known.Instance, known, known.Kind, known.Limit, done[last].Event, want))
		}
	}
	return violations
}

// sets returns what is set after the event, and its limit.
func (e *Event) sets() (store.Kind, int64) {
	if e.Kind == Network {
		o := e.override()
		return o.Kind, o.Limit.Events
	}
	return store.KindNone, 0
}
