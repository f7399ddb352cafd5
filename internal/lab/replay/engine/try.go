package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// attempt is a limit that is tried, with what it would have done.
type attempt struct {
	replay.Try
	replay.WhatIf
	limit config.Limit
	keys  map[string]bool // that it refuses
}

// attemptOf returns the attempt of a limit.
func attemptOf(try replay.Try, l *config.Limit, label string) *attempt {
	_, seconds := window(l)
	return &attempt{Try: try, limit: *l, keys: make(map[string]bool), WhatIf: replay.WhatIf{Limit: label, Events: l.MaxEvents.Number, Window: seconds}}
}

// count counts a request of a key that the limit refuses.
func (t *attempt) count(key string) {
	if t.Refused++; !t.keys[key] {
		t.keys[strings.Clone(key)] = true
	}
}

// findAttempt returns the zone of a limit that is to be tried, and separates its name from that of a plan. Both may have dots.
func findAttempt(zones map[string]*zone.Zone, try *replay.Try) (*zone.Zone, error) {
	if z := zones[try.Zone]; z != nil {
		return z, nil
	}
	var found []replay.Try
	names := slices.Sorted(maps.Keys(zones))
	for _, name := range names {
		if plan, ok := strings.CutPrefix(try.Zone, name+"."); ok && zones[name].Plans[plan] != nil {
			found = append(found, replay.Try{Zone: name, Plan: plan, Rate: try.Rate})
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no zone %q; the zones are %s", try.Zone, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, fmt.Errorf("%q is plan %q of zone %q, and plan %q of zone %q; rename one of them",
			try.Zone, found[0].Plan, found[0].Zone, found[1].Plan, found[1].Zone)
	}
	*try = found[0]
	return zones[try.Zone], nil
}

// newAttempt returns the limit that is to be tried.
func newAttempt(zones map[string]*zone.Zone, try replay.Try) (*attempt, error) {
	z, err := findAttempt(zones, &try)
	if err != nil {
		return nil, err
	}
	l, err := z.LimitOf(try.Plan)
	if err != nil {
		return nil, err
	}
	wanted, err := config.ParseText(try.Rate)
	if err != nil {
		return nil, err
	}
	l = wanted.Over(&l)
	if _, err := z.With(try.Plan, l); err != nil {
		return nil, fmt.Errorf("rate %q: %w", try.Rate, err)
	}
	label := labelOf(&l)
	if strings.Contains(try.Rate, " ") {
		label = try.Rate
	}
	return attemptOf(try, &l, strings.TrimSpace(try.Plan+" "+label)), nil
}

// labelOf returns the numbers of a limit, as "100/1m".
func labelOf(l *config.Limit) string {
	if l.MaxEvents == nil {
		return "plans"
	}
	per, _ := window(l)
	return l.MaxEvents.String() + per
}

// window returns the window of a limit as the config writes it, as "/1m", and its length in seconds. Slots have none.
func window(l *config.Limit) (per string, seconds float64) {
	if config.CountsSlots(l.Algorithm) {
		return "", 0
	}
	return "/" + l.Window.Format(), l.Window.Length().Seconds()
}
