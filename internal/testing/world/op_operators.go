package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What operators do with a key.
const (
	Override Kind = "Override" // Sort is what for: exempt, banned or limited (to Cost events)
	Clear    Kind = "Clear"    // the override
	Unban    Kind = "Unban"
	Reset    Kind = "Reset"
	Reload   Kind = "Reload" // another generation of the config of a whole instance; with Cost, that is the limit of Zone
)

const banned, limited = "banned", "limited"

var (
	_ = operate(operation{Kind: Override, sort: operators, often: 2, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.setRule(e, w.plan.selector(e.Key), e.override())
	})})
	_ = operate(operation{Kind: Clear, sort: operators, fits: overrides, draw: drawOverride, ask: deed(func(w *world, e *Event) error {
		return w.setRule(e, w.plan.selector(e.Key), store.Override{})
	})})
	_ = operate(operation{Kind: Unban, sort: operators, draw: drawKey, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.Unban(context.Background(), w.rules[e.Zone], w.plan.selector(e.Key))
	})})
	_ = operate(operation{Kind: Reset, sort: operators, draw: drawKey, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).store.Reset(context.Background(), w.rules[e.Zone], w.plan.keyName(e.Key))
	})})
	_ = operate(operation{Kind: Reload, sort: operators, fits: func(p *Plan) bool { return p.Whole }, draw: drawReload, ask: (*world).reload})
)

// setRule sets an override at the instance of an event.
func (w *world) setRule(e *Event, of store.Selector, to store.Override) error {
	return w.instance(e.Instance).store.SetRule(context.Background(), w.rules[e.Zone], of, to)
}

func overrides(p *Plan) bool { return len(p.overridden()) > 0 }

// overridden are the zones with overrides.
func (p *Plan) overridden() (zones []int) {
	for i, z := range p.Zones {
		if z.Overrides {
			zones = append(zones, i)
		}
	}
	return zones
}

func drawOverride(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	zones := p.overridden()
	e.Zone, e.Key, e.Sort, e.Cost = zones[r.IntN(len(zones))], r.IntN(maxKeys), []string{exempt, banned, limited}[r.IntN(3)], 1+r.Int64N(20)
	if r.IntN(2) == 0 {
		e.For = between(r.Uint64(), store.MinOverride, 3*time.Second).Truncate(time.Microsecond)
	}
}

func drawKey(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	e.Zone, e.Key = r.IntN(len(p.Zones)), r.IntN(maxKeys)
}

func drawReload(r *rand.Rand, p *Plan, e *Event, _ time.Duration) {
	if e.Zone = r.IntN(len(p.Zones)); r.IntN(2) == 0 {
		e.Cost = 1 + r.Int64N(20)
	}
}

// Deed is what an operator has done.
type Deed struct {
	Event        int
	Kind         Kind
	Sort         string
	Zone, Key    int
	Began, Ended time.Duration
	Failure      string // its kind; empty: it is done
	Err          string
}

// deed notes what an operator does.
func deed(do func(w *world, e *Event) error) func(w *world, i int, e *Event) {
	return func(w *world, i int, e *Event) {
		d := Deed{Event: i, Kind: e.Kind, Sort: e.Sort, Zone: e.Zone, Key: e.Key, Began: w.net.now()}
		in := w.instance(e.Instance)
		if err := do(w, e); in.dead() {
			d.Failure = killed
		} else if err != nil {
			d.Failure, d.Err = store.Failure(err), err.Error()
		}
		d.Ended = w.net.now()
		tell(w.history, &w.history.Deeds, d)
	}
}

// override returns what an operator sets.
func (e *Event) override() store.Override {
	o := store.Override{Kind: store.KindExempt, For: e.For}
	switch e.Sort {
	case banned:
		o.Kind = store.KindBanned
	case limited:
		o.Kind, o.Limit = store.KindLimit, algorithms.Limit{Events: e.Cost}
	}
	return o
}

func (w *world) reload(_ int, e *Event) {
	in := w.instance(e.Instance)
	if in.dead() {
		return
	}
	w.history.note(w.net.now(), fmt.Sprintf("instance %d: reloads, with a limit of %d for zone %d", in.number, e.Cost, e.Zone))
	if e.Cost > 0 {
		in.limits[e.Zone] = e.Cost
	}
	in.whole.Swap(w.load(in)).release(w.t)
}

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

// networks checks what the instances know of networks in the end: what was done last, unless Redis may have lost it. What
// an instance knows without a cause is wrong in any case.
func (h *History) networks() {
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
			h.wrong("instance %d knows %v as %v, without a cause", known.Instance, known, known.Kind)
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
			h.wrong("instance %d knows %v as %v (%d), and operator %d has set %v", known.Instance, known, known.Kind, known.Limit, done[last].Event, want)
		}
	}
}

// sets returns what is set after the event, and its limit.
func (e *Event) sets() (store.Kind, int64) {
	if e.Kind == Network {
		o := e.override()
		return o.Kind, o.Limit.Events
	}
	return store.KindNone, 0
}
