package world

import (
	"context"
	"fmt"
	"net/netip"
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
		return w.instance(e.Instance).store.SetNetwork(context.Background(), w.rules[e.Zone], networkOf(e.Key), e.override())
	})})
	_ = operate(operation{Kind: ClearNetwork, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.ClearNetwork(context.Background(), w.rules[e.Zone], networkOf(e.Key))
	})})
)

// networkOf returns a network by its number. Each is in that of the number before.
func networkOf(number int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 0, 0}), 8+number)
}

// Known is what an instance knows in the end of a network.
type Known struct {
	Instance, Zone, Network int
	Kind                    store.Kind
}

// readNetworks has an instance tell which networks it knows.
func (w *world) readNetworks(in *instance) {
	for zone, rule := range w.rules {
		for number := range maxKeys {
			known := Known{in.number, zone, number, store.KindNone}
			if n := in.store.Networks(rule).Get(networkOf(number)); n != nil {
				known.Kind = n.Override.Kind
			}
			w.history.Networks = append(w.history.Networks, known)
		}
	}
}

var _ = promise("all instances know the same networks, as operators have set them", (*History).networks)

// networks checks what the instances know of networks in the end: what was done last, unless Redis may have lost it. What an
// instance knows without a cause is wrong in any case.
func (h *History) networks() (violations []string) {
	for _, known := range h.Networks {
		var done []Deed
		for _, d := range h.Deeds {
			if (d.Kind == Network || d.Kind == ClearNetwork) && d.Zone == known.Zone && d.Key == known.Network {
				done = append(done, d)
			}
		}
		causes := func(d Deed) bool { return h.Plan.Events[d.Event].sets() == known.Kind }
		if known.Kind != store.KindNone && !slices.ContainsFunc(done, causes) {
			violations = append(violations, fmt.Sprintf("instance %d knows network %d of zone %d as %v, without a cause", known.Instance, known.Network, known.Zone, known.Kind))
		}
		last := slices.IndexFunc(done, func(d Deed) bool {
			return !slices.ContainsFunc(done, func(other Deed) bool { return other.Failure != "" || other.Event != d.Event && other.Ended >= d.Began })
		})
		if last < 0 || h.hasLost() || len(h.clocks) > 1 {
			continue
		}
		e := &h.Plan.Events[done[last].Event]
		want := e.sets()
		if e.For > 0 {
			want = store.KindNone // it has ended
		}
		if known.Kind != want {
			violations = append(violations, fmt.Sprintf("instance %d knows network %d of zone %d as %v, and operator %d has set %v", known.Instance, known.Network, known.Zone, known.Kind, done[last].Event, want))
		}
	}
	return violations
}

// sets returns what is set after the event.
func (e *Event) sets() store.Kind {
	if e.Kind == Network {
		return e.override().Kind
	}
	return store.KindNone
}
