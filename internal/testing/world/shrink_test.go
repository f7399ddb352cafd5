//go:build deep

package world

import (
	"fmt"
	"go/parser"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestShrink breaks what worlds tell, and demands that a few events are left, which the plan in Go has.
func TestShrink(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken func(h *History) []string
		from   uint64 // a seed shortly before the first that shows it
		events int    // at most, when it is shrunk
	}{
		{"as if all were admitted", allAdmitted, 1, 4},
		{"as if nothing were charged of which the reply is lost", chargedInVain, 237, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := func(p *Plan) []string { return c.broken(Run(t, p)) }
			seed := c.from
			for ; len(broken(drawShort(seed, 100))) == 0; seed++ {
				if seed == 3000 {
					t.Fatal("no seed shows it")
				}
			}
			p := Shrink(drawShort(seed, 100), broken, time.Minute)
			violations := broken(p)
			if len(p.Events) > c.events || len(violations) == 0 || len(p.Zones) != 1 {
				t.Errorf("seed %d is shrunk to %d events and %d zones, which break %q", seed, len(p.Events), len(p.Zones), violations)
			}
			source := p.Source()
			if _, err := parser.ParseExpr(source); err != nil || strings.Count(source, "Kind:") != len(p.Events) {
				t.Errorf("%v:\n%s", err, source)
			}
		})
	}
}

// drawShort draws a plan of few events, which is shrunk soon.
func drawShort(seed uint64, events int) *Plan {
	p := Draw(seed)
	p.Events = p.Events[:min(events, len(p.Events))]
	return p
}

// allAdmitted checks a history as if nobody had been refused.
func allAdmitted(h *History) []string {
	for i := range h.Answers {
		if a := &h.Answers[i]; a.Failure == "" && a.Cost > 0 {
			a.Decision.Allowed, a.Charged = true, true
		}
	}
	return Check(h)
}

// chargedInVain demands of a history what does not hold: that what has no answer is not charged.
func chargedInVain(h *History) (violations []string) {
	for zone := range h.Plan.Zones {
		k := h.key(zone, 0)
		if k.DryRun {
			continue // which may be charged or not
		}
		unknown := slices.DeleteFunc(slices.Clone(k.unknown), func(a *Answer) bool { return a.Failure != store.FailureNetwork })
		charged := int64(0)
		for _, a := range k.admitted {
			charged += a.Cost + max(0, a.Delta)
		}
		if left := k.left(); len(unknown) > 0 && k.Limit.Window == time.Hour && k.Lend == 0 && left.Quota-left.Remaining > charged {
			violations = append(violations, fmt.Sprintf("zone %d has charged client %d, which has no answer", zone, unknown[0].Event))
		}
	}
	return violations
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
