package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// attempt is another limit of a zone that is tried, with what it would have done.
type attempt struct {
	replay.WhatIf
	zone  string
	limit config.Limit
	keys  map[string]bool // that it refuses
}

// attemptOf returns the attempt of a limit.
func attemptOf(zone string, l *config.Limit) *attempt {
	_, seconds := window(l)
	return &attempt{
		zone: zone, limit: *l, keys: make(map[string]bool),
		WhatIf: replay.WhatIf{Limit: labelOf(l), Events: l.MaxEvents.Number, Window: seconds},
	}
}

// count counts a request of a key that the limit refuses.
func (t *attempt) count(key string) {
	if t.Refused++; !t.keys[key] {
		t.keys[strings.Clone(key)] = true
	}
}

// newAttempt returns the limit that is to be tried.
func newAttempt(zones map[string]*zone.Zone, try replay.Try) (*attempt, error) {
	z := zones[try.Zone]
	if z == nil {
		return nil, fmt.Errorf("no zone %q; the zones are %s", try.Zone, strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
	}
	wanted, err := config.ParseText(try.Rate)
	if err != nil {
		return nil, err
	}
	l := wanted.Over(&z.Limit)
	switch _, err := z.With(l); {
	case z.MaxEvents == nil:
		return nil, fmt.Errorf("zone %q has only the limits of its plans: try them in a copy of the config", z.Name)
	case err == nil && l.Varies():
		err = errors.New("the limit depends on the request")
		fallthrough
	case err != nil:
		return nil, fmt.Errorf("rate %q: zone %q: %w", try.Rate, z.Name, err)
	}
	made := attemptOf(z.Name, &l)
	if strings.Contains(try.Rate, " ") {
		made.Limit = try.Rate
	}
	return made, nil
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
