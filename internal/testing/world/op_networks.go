package world

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// What operators do with a network or a group, which the event's Key numbers.
const (
	Network      Kind = "Network" // Sort is what for, as of an Override
	ClearNetwork Kind = "ClearNetwork"
	Group        Kind = "Group" // as Network
	ClearGroup   Kind = "ClearGroup"
)

var (
	_ = operate(operation{Kind: Network, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.SetNetwork(context.Background(), w.rules[e.Zone], w.plan.network(e.Key), e.override())
	})})
	_ = operate(operation{Kind: ClearNetwork, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.ClearNetwork(context.Background(), w.rules[e.Zone], w.plan.network(e.Key))
	})})
	_ = operate(operation{Kind: Group, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.SetGroup(context.Background(), w.rules[e.Zone], groupOf(e.Key), e.override())
	})})
	_ = operate(operation{Kind: ClearGroup, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.ClearGroup(context.Background(), w.rules[e.Zone], groupOf(e.Key))
	})})
)

// groupOf returns a group by its number.
func groupOf(number int) store.Group {
	return store.Group{By: "{http.request.header.User-Agent}", Value: fmt.Sprintf("a/%d %%", number)}
}

// Known is what an instance knows in the end of a network or a group.
type Known struct {
	Instance, Zone, Number int
	Group                  bool
	Kind                   store.Kind
	Limit                  int64 // of KindLimit
}

// String is which one it is.
func (k *Known) String() string {
	if k.Group {
		return fmt.Sprintf("group %d of zone %d", k.Number, k.Zone)
	}
	return fmt.Sprintf("network %d of zone %d", k.Number, k.Zone)
}

// about reports whether an operator has done something with it.
func (k *Known) about(d *Deed) bool {
	is := d.Kind == Network || d.Kind == ClearNetwork
	if k.Group {
		is = d.Kind == Group || d.Kind == ClearGroup
	}
	return is && d.Zone == k.Zone && d.Key == k.Number
}

// readNetworks has an instance tell which networks and groups it knows.
func (w *world) readNetworks(in *instance) {
	for zone, rule := range w.rules {
		all := in.store.Networks(rule)
		for number := range maxKeys {
			for i, of := range []*store.Network{all.Get(w.plan.network(number)), all.GetGroup(groupOf(number))} {
				known := Known{Instance: in.number, Zone: zone, Number: number, Group: i == 1}
				if of != nil {
					known.Kind, known.Limit = of.Override.Kind, of.Override.Limit.Events
				}
				w.history.Networks = append(w.history.Networks, known)
			}
		}
	}
}

var _ = promise("all instances know the same networks and groups, as operators have set them", (*History).networks)

// networks checks what the instances know of networks and groups in the end: what was done last, unless Redis may have lost it. What
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
	if e.Kind == Network || e.Kind == Group {
		o := e.override()
		return o.Kind, o.Limit.Events
	}
	return store.KindNone, 0
}
