package cases

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// Variant is a config with one small change.
type Variant struct {
	Change string // in words
	Config []byte
}

// object is an object of a config.
type object = map[string]any

// edit is a change of a zone: what is at the end of a way of names and places gets another value, or goes if that is
// nil.
type edit struct {
	change string
	way    []any
	value  any
}

// Mutate changes a config a little, one change at a time, and finds out whether a case notices. All cases must hold
// without a change.
func Mutate(config []byte, files []*File, o *Options) (tried []Change, err error) {
	variants, err := Variants(config)
	if err != nil {
		return nil, err
	}
	if err := CheckAccepts(files, variants); err != nil {
		return nil, err
	}
	for _, variant := range variants {
		e, err := newEngine(variant.Config)
		if err != nil {
			continue // nobody can make this change by mistake
		}
		c := Change{Change: variant.Change}
		for f, of := range o.cases(files) {
			if len(e.carryOut(f, of, false)) > 0 {
				c.FoundBy = of.Name
				break
			}
		}
		e.Release()
		for _, f := range files {
			for _, a := range f.Accepts {
				if a.Change == variant.Change {
					c.Accepted = a.Reason
				}
			}
		}
		if o.Tried != nil {
			o.Tried(c)
		}
		tried = append(tried, c)
	}
	return tried, nil
}

// Variants returns a config with each change that --mutate tries, one at a time. A zone that several handlers have is
// changed in all of them, because their limits must be alike.
func Variants(config []byte) (all []Variant, err error) {
	var parsed any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	zones := zonesIn(parsed)
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		edits := []edit{{change: "removed"}}
		for _, z := range zones[name] {
			edits = append(edits, editsOf(z)...)
		}
		seen := make(map[string]bool)
		for _, e := range edits {
			if seen[e.change] {
				continue
			}
			seen[e.change] = true
			changed, err := e.apply(config, name)
			if err != nil {
				return nil, err
			}
			all = append(all, Variant{Change: "zone " + name + ": " + e.change, Config: changed})
		}
	}
	return all, nil
}

// CheckAccepts returns an error if a file accepts a change that is none of the config: it is misspelled, or the config
// has changed since, so that its reason may not hold any longer.
func CheckAccepts(files []*File, variants []Variant) error {
	changes := make([]string, len(variants))
	for i := range variants {
		changes[i] = variants[i].Change
	}
	for _, f := range files {
		for _, a := range f.Accepts {
			if !slices.Contains(changes, a.Change) {
				return fmt.Errorf("accept %q is no change of the config%s, --mutate --verbose prints them, at %s:%d", a.Change, suggest.Hint(a.Change, changes), f.Name, a.Line)
			}
		}
	}
	return nil
}

// apply returns the config with the change in all uses of a zone.
func (e *edit) apply(config []byte, name string) ([]byte, error) {
	var parsed any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	eachHandler(parsed, func(zones object) {
		if _, ok := zones[name].(object); ok {
			edited(zones, append([]any{name}, e.way...), e.value)
		}
	})
	return json.Marshal(parsed)
}

// edited returns a value with a change at the end of a way. What has no such way stays.
func edited(of any, way []any, to any) any {
	if len(way) == 0 {
		return to
	}
	switch of := of.(type) {
	case object:
		name, _ := way[0].(string)
		if of[name] = edited(of[name], way[1:], to); of[name] == nil {
			delete(of, name)
		}
	case []any:
		i, _ := way[0].(int)
		if i >= len(of) {
			break
		}
		if of[i] = edited(of[i], way[1:], to); of[i] == nil {
			return slices.Delete(of, i, i+1)
		}
	}
	return of
}

// zonesIn returns the zones of a config by name, with each of their uses.
func zonesIn(config any) map[string][]object {
	all := make(map[string][]object)
	eachHandler(config, func(zones object) {
		for name, value := range zones {
			if z, ok := value.(object); ok {
				all[name] = append(all[name], z)
			}
		}
	})
	return all
}

// eachHandler calls a function with the zones of each rate limit handler in a config.
func eachHandler(config any, f func(zones object)) {
	switch value := config.(type) {
	case object:
		if zones, ok := value["rate_limits"].(object); ok && value["handler"] == "rate_limit" {
			f(zones)
		}
		for _, inner := range value {
			eachHandler(inner, f)
		}
	case []any:
		for _, inner := range value {
			eachHandler(inner, f)
		}
	}
}

// place is an object in a zone: what its changes begin with, and the way to it.
type place struct {
	words string
	way   []any
}

// to returns the way to what is in a place.
func (p place) to(step any) []any { return append(slices.Clip(p.way), step) }

// set returns a change of an option to another value.
func (p place) set(option, from, to string, value any) edit {
	return edit{p.words + option + " " + from + " -> " + to, p.to(option), value}
}

// count returns a change of a number.
func (p place) count(option string, from, to float64) edit {
	return p.set(option, fmt.Sprintf("%.0f", from), fmt.Sprintf("%.0f", to), to)
}

// time returns a change of a duration.
func (p place) time(option string, from, to time.Duration) edit {
	return p.set(option, duration.Format(from), duration.Format(to), float64(to))
}

// without returns the removal of an option.
func (p place) without(option string) edit {
	return edit{p.words + option + " removed", p.to(option), nil}
}

// editsOf returns the changes of a zone.
func editsOf(z object) (all []edit) {
	all = append(all, limitEdits(place{}, z)...)
	p, _ := z["plan"].(object)
	plans, _ := p["plans"].(object)
	for _, name := range slices.Sorted(maps.Keys(plans)) {
		at := place{"plan " + name + ", ", []any{"plan", "plans", name}}
		all = append(all, edit{"plan " + name + " removed", at.way, nil})
		if p, ok := plans[name].(object); ok {
			all = append(all, limitEdits(at, p)...)
		}
	}
	all = append(all, keyEdits(z)...)
	for _, option := range []string{"match", "exempt", "block"} {
		all = append(all, matcherEdits(option, z)...)
	}
	return append(all, policyEdits(z)...)
}

// others are the algorithms that take the place of another.
var others = map[string]string{
	"": "token_bucket", "sliding_window_log": "token_bucket", "sliding_window_counter": "token_bucket", "token_bucket": "fixed_window",
	"gcra": "fixed_window", "fixed_window": "sliding_window_log", "leaky_bucket": "fixed_window",
}

// toggles are options with two words, and the default.
var toggles = map[string][2]string{"refill": {"smooth", "interval"}, "mode": {"meter", "queue"}, "align": {"clock", "first_request"}}

// limitEdits returns the changes of a limit: that of a zone, or of a plan.
func limitEdits(at place, l object) (all []edit) {
	for _, option := range []string{"max_events", "burst"} {
		if n, ok := l[option].(float64); ok && n > 0 {
			all = append(all, at.count(option, n, n+1), at.count(option, n, n-1))
		} else if text, ok := l[option].(string); ok {
			if fallback := strings.TrimSpace(text[strings.LastIndexByte(text, '}')+1:]); fallback != "" {
				all = append(all, at.set(option, text, fallback, json.Number(fallback)))
			}
		}
	}
	calendar := false
	if d, ok := durationIn(l["window"]); ok && d > 0 {
		all = append(all, at.time("window", d, 2*d), at.time("window", d, d/2))
	} else if word, ok := l["window"].(string); ok {
		if other := map[string]string{"day": "week", "week": "day", "month": "week", "year": "month"}[word]; other != "" {
			calendar = true
			all = append(all, at.set("window", word, other, other))
		}
	}
	algorithm, _ := l["algorithm"].(string)
	if other, known := others[algorithm]; known && !calendar && l["max_events"] != nil && (at.words == "" || algorithm != "") {
		all = append(all, at.set("algorithm", cmp.Or(algorithm, "sliding_window_log"), other, other))
	}
	for _, option := range slices.Sorted(maps.Keys(toggles)) {
		if word, ok := l[option].(string); ok {
			other := toggles[option][0]
			if word == other {
				other = toggles[option][1]
			}
			all = append(all, at.set(option, word, other, other))
		}
	}
	if l["max_wait"] != nil {
		all = append(all, at.without("max_wait"))
	}
	return all
}

// durationIn returns a duration of a config: a number of nanoseconds, or a text.
func durationIn(value any) (time.Duration, bool) {
	switch value := value.(type) {
	case float64:
		return time.Duration(value), true
	case string:
		d, err := option.ParseDuration(value)
		return d, err == nil
	}
	return 0, false
}
