package cases

import (
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

// edit is a change of a zone, in words and done. The function reports whether the zone has what it changes.
type edit struct {
	change string
	do     func(zone object) bool
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
		z, ok := zones[name].(object)
		switch {
		case !ok:
		case e.do == nil:
			delete(zones, name)
		default:
			e.do(z)
		}
	})
	return json.Marshal(parsed)
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

// editsOf returns the changes of a zone.
func editsOf(z object) (all []edit) {
	all = append(all, limitEdits("", z, func(z object) object { return z })...)
	for _, name := range slices.Sorted(maps.Keys(plansOf(z))) {
		in := func(z object) object { p, _ := plansOf(z)[name].(object); return p }
		all = append(all, edit{"plan " + name + " removed", func(z object) bool { delete(plansOf(z), name); return true }})
		if p := in(z); p != nil {
			all = append(all, limitEdits("plan "+name+", ", p, in)...)
		}
	}
	all = append(all, keyEdits(z)...)
	for _, option := range []string{"match", "exempt", "block"} {
		all = append(all, matcherEdits(option, z)...)
	}
	all = append(all, policyEdits(z)...)
	return all
}

// plansOf returns the plans of a zone by name.
func plansOf(z object) object {
	p, _ := z["plan"].(object)
	plans, _ := p["plans"].(object)
	return plans
}

// set returns a change of an option to another value; nil removes the option.
func set(prefix, option, from, to string, value any, in func(object) object) edit {
	return edit{prefix + option + " " + from + " -> " + to, func(z object) bool {
		if of := in(z); of != nil {
			if of[option] = value; value == nil {
				delete(of, option)
			}
		}
		return true
	}}
}

// without returns the removal of an option.
func without(prefix, option string, in func(object) object) edit {
	return edit{prefix + option + " removed", func(z object) bool {
		if of := in(z); of != nil {
			delete(of, option)
		}
		return true
	}}
}

// others are the algorithms that take the place of another.
var others = map[string]string{
	"": "token_bucket", "sliding_window_log": "token_bucket", "sliding_window_counter": "token_bucket", "token_bucket": "fixed_window",
	"gcra": "fixed_window", "fixed_window": "sliding_window_log", "leaky_bucket": "fixed_window",
}

// toggles are options with two words, and the default.
var toggles = map[string][2]string{"refill": {"smooth", "interval"}, "mode": {"meter", "queue"}, "align": {"clock", "first_request"}}

// limitEdits returns the changes of a limit: that of a zone, or of a plan.
func limitEdits(prefix string, l object, in func(object) object) (all []edit) {
	for _, option := range []string{"max_events", "burst"} {
		if n, ok := l[option].(float64); ok && n > 0 {
			was := fmt.Sprintf("%.0f", n)
			all = append(all, set(prefix, option, was, fmt.Sprintf("%.0f", n+1), n+1, in), set(prefix, option, was, fmt.Sprintf("%.0f", n-1), n-1, in))
		} else if text, ok := l[option].(string); ok {
			if fallback := strings.TrimSpace(text[strings.LastIndexByte(text, '}')+1:]); fallback != "" {
				all = append(all, set(prefix, option, text, fallback, json.Number(fallback), in))
			}
		}
	}
	calendar := false
	if d, ok := durationIn(l["window"]); ok && d > 0 {
		all = append(all, set(prefix, "window", duration.Format(d), duration.Format(2*d), float64(2*d), in), set(prefix, "window", duration.Format(d), duration.Format(d/2), float64(d/2), in))
	} else if word, ok := l["window"].(string); ok {
		if other := map[string]string{"day": "week", "week": "day", "month": "week", "year": "month"}[word]; other != "" {
			calendar = true
			all = append(all, set(prefix, "window", word, other, other, in))
		}
	}
	algorithm, _ := l["algorithm"].(string)
	if other, known := others[algorithm]; known && !calendar && l["max_events"] != nil && (prefix == "" || algorithm != "") {
		was := algorithm
		if was == "" {
			was = "sliding_window_log"
		}
		all = append(all, set(prefix, "algorithm", was, other, other, in))
	}
	for _, option := range slices.Sorted(maps.Keys(toggles)) {
		if word, ok := l[option].(string); ok {
			other := toggles[option][0]
			if word == other {
				other = toggles[option][1]
			}
			all = append(all, set(prefix, option, word, other, other, in))
		}
	}
	if l["max_wait"] != nil {
		all = append(all, without(prefix, "max_wait", in))
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
