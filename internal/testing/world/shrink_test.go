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
		p = Shrink(p, broken)
		violations, source := broken(p), p.Source()
		if len(p.Events) > 6 || len(violations) == 0 {
			t.Errorf("seed %d is shrunk to %d events, which break %q", seed, len(p.Events), violations)
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
	least := Shrink(Draw(1), func(p *Plan) (all []string) {
		if len(p.Events) < 3 {
			return []string{"too few"}
		}
		return []string{fmt.Sprintf("%d events", len(p.Events))}
	})
	if len(least.Events) != 3 {
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
