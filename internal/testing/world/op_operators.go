package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// What operators do with a key. Numbers below 0 are those of networks: see [Plan.selector].
const (
	Override Kind = "Override" // Sort is what for: exempt, banned or limited (to Cost events)
	Clear    Kind = "Clear"    // the override
	Unban    Kind = "Unban"
	Reset    Kind = "Reset"
	Reload   Kind = "Reload" // another generation of the config of a whole instance; with Cost, that is the limit of Zone
)

const banned, limited = "banned", "limited"

var (
	_ = operate(operation{Kind: Override, sort: operators, often: 4, fits: overrides, draw: drawOverride, ask: deed((*world).setRule)})
	_ = operate(operation{Kind: Clear, sort: operators, often: 2, fits: overrides, draw: drawOverride, ask: deed((*world).setRule)})
	_ = operate(operation{Kind: Unban, sort: operators, draw: drawKey, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).Unban(context.Background(), w.rules[e.Zone], w.plan.selector(e.Key))
	})})
	_ = operate(operation{Kind: Reset, sort: operators, draw: drawKey, ask: deed(func(w *world, e *Event) error {
		return w.instance(e.Instance).Reset(context.Background(), w.rules[e.Zone], w.plan.keyName(e.Key))
	})})
	_ = operate(operation{Kind: Reload, sort: operators, fits: func(p *Plan) bool { return p.Whole }, draw: drawReload, ask: (*world).reload})
)

// setRule sets an override, or clears it.
func (w *world) setRule(e *Event) error {
	return w.instance(e.Instance).SetRule(context.Background(), w.rules[e.Zone], w.plan.selector(e.Key), e.override())
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
	e.Zone, e.Key = zones[r.IntN(len(zones))], r.IntN(maxKeys+maxNetworks)-maxNetworks
	e.Sort, e.Cost = []string{exempt, banned, limited}[r.IntN(3)], 1+r.Int64N(20)
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
	Number int // of the event
	Event
	Began, Ended time.Duration
	Failure      string // its kind; empty: it is done
	Err          string
}

// deed notes what an operator does.
func deed(do func(w *world, e *Event) error) func(w *world, i int, e *Event) {
	return func(w *world, i int, e *Event) {
		d := Deed{Number: i, Event: *e, Began: w.net.now()}
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
	switch {
	case e.Kind == Clear:
		return store.Override{}
	case e.Sort == banned:
		return store.Override{Kind: store.KindBanned, For: e.For}
	case e.Sort == limited:
		return store.Override{Kind: store.KindLimit, For: e.For, Limit: algorithms.Limit{Events: e.Cost}}
	}
	return store.Override{Kind: store.KindExempt, For: e.For}
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

// Known is what an instance knows in the end of a network.
type Known struct {
	Instance, Zone, Key int
	Kind                store.Kind
	Limit               int64 // of KindLimit
}

// readNetworks has an instance tell which networks it knows.
func (w *world) readNetworks(in *instance) {
	for zone, rule := range w.rules {
		all := in.Networks(rule)
		for number := -maxNetworks; number < 0; number++ {
			o := all.Override(w.plan.selector(number).Network)
			w.history.Networks = append(w.history.Networks, Known{in.number, zone, number, o.Kind, o.Limit.Events})
		}
	}
}
