//go:build deep

package world

import (
	"fmt"
	"go/parser"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestShrink has worlds in which it looks as if all were admitted, and demands that a few events are left, which the plan in Go has.
func TestShrink(t *testing.T) {
	broken := func(p *Plan) []string { return allAdmitted(Run(t, p)) }
	for seed := uint64(1); seed < 100; seed++ {
		p := Draw(seed)
		if len(p.Events) > 100 || len(broken(p)) == 0 {
			continue
		}
		p = Shrink(p, broken, time.Minute)
		violations, source := broken(p), p.Source()
		if len(p.Events) > 4 || len(violations) == 0 || len(p.Zones) != 1 {
			t.Errorf("seed %d is shrunk to %d events and %d zones, which break %q", seed, len(p.Events), len(p.Zones), violations)
		}
		if _, err := parser.ParseExpr(source); err != nil || strings.Count(source, "Kind:") != len(p.Events) {
			t.Errorf("%v:\n%s", err, source)
		}
		return
	}
	t.Error("no seed shows it")
}

// TestShrinkKeepsWhatIsBroken: another violation does not count.
func TestShrinkKeepsWhatIsBroken(t *testing.T) {
	p := Draw(1)
	p.Zones = append(p.Zones[:1], p.Zones[0])
	p.Events = p.Events[:5]
	for i := range p.Events {
		p.Events[i].Zone = i % 2
	}
	least := Shrink(p, func(p *Plan) (all []string) {
		for i, e := range p.Events {
			all = append(all, fmt.Sprintf("event %d is of zone %d", i, e.Zone))
		}
		if len(p.Zones) == 1 {
			return []string{"there is one zone"}
		}
		return append(all[len(all)/2:], all...)
	}, time.Minute)
	if len(least.Events) != 1 || len(least.Zones) != 2 {
		t.Errorf("%+v", least)
	}
}

// TestSameWithoutAnEvent: what messages meet does not change when an event is taken from the plan that did nothing to
// them.
func TestSameWithoutAnEvent(t *testing.T) {
	p := &Plan{Seed: 7, Instances: 2, Zones: Draw(1).Zones[:1], Events: []Event{
		{Kind: LoseReplies, Instance: 0, For: 5 * time.Second},
		{At: 100 * time.Millisecond, Kind: Take, Instance: 1, Key: 1, Cost: 1},
	}}
	for i := range 20 {
		p.Events = append(p.Events, Event{At: time.Duration(i+1) * 200 * time.Millisecond, Kind: Take, Instance: 0, Cost: 1})
	}
	lost := func(p *Plan) (all []string) {
		for _, l := range Run(t, p).lines {
			if strings.HasPrefix(l.text, "lost: ") {
				all = append(all, l.at.String())
			}
		}
		return all
	}
	without := *p
	without.Events = slices.Delete(slices.Clone(p.Events), 1, 2)
	first, again := lost(p), lost(&without)
	slices.Sort(first)
	slices.Sort(again)
	if len(first) < 3 || !slices.Equal(first, again) {
		t.Errorf("replies are lost at\n%v, and without one event at\n%v", first, again)
	}
}
