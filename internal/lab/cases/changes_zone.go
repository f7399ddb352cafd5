package cases

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// keyEdits returns the changes of what distinguishes clients.
func keyEdits(z object) (all []edit) {
	key, _ := z["key"].(string)
	if key == "" {
		return nil
	}
	all = append(all, place{}.without("key"))
	if parts := placeholders.FindAllString(key, -1); len(parts) > 1 {
		for _, part := range parts {
			all = append(all, edit{"key without " + part, []any{"key"}, strings.TrimSpace(strings.Replace(key, part, "", 1))})
		}
	}
	for option, width := range map[string]float64{"ipv4_prefix": 32, "ipv6_prefix": 128} {
		if n, ok := z[option].(float64); ok && n < width {
			all = append(all, place{}.count(option, n, n+1))
		}
	}
	slices.SortFunc(all, func(a, b edit) int { return strings.Compare(a.change, b.change) })
	return all
}

// matcherEdits returns the changes of matchers: all of them removed, one set, one matcher of a set, one value of a
// matcher.
func matcherEdits(option string, z object) (all []edit) {
	sets, _ := z[option].([]any)
	if len(sets) == 0 {
		return nil
	}
	all = append(all, place{}.without(option))
	for i := range sets {
		at := place{option + ": ", []any{option, i}}
		if len(sets) > 1 {
			at.words = option + " " + strconv.Itoa(i+1) + ": "
			all = append(all, edit{strings.TrimSuffix(at.words, ": ") + " removed", at.way, nil})
		}
		matchers, _ := sets[i].(object)
		for _, name := range slices.Sorted(maps.Keys(matchers)) {
			if len(matchers) > 1 {
				all = append(all, at.without(name))
			}
			all = append(all, valueEdits(place{at.words + name, at.to(name)}, matchers[name])...)
		}
	}
	return all
}

// valueEdits returns the removals of one value from a list, or from the list in an object.
func valueEdits(at place, value any) (all []edit) {
	switch value := value.(type) {
	case []any:
		for i := range value {
			if len(value) > 1 {
				all = append(all, edit{fmt.Sprintf("%s without %v", at.words, value[i]), at.to(i), nil})
			}
		}
	case object:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			all = append(all, valueEdits(place{at.words + " " + inner, at.to(inner)}, value[inner])...)
		}
	}
	return all
}

// removable are options whose removal is a change.
var removable = []string{
	"ban", "charge", "enforce", "missing_key", "overrides",
}

// policyEdits returns the changes of the rest of a zone.
func policyEdits(z object) (all []edit) {
	for _, option := range removable {
		if z[option] != nil && z[option] != false {
			all = append(all, place{}.without(option))
		}
	}
	switch cost := z["cost"].(type) {
	case float64:
		all = append(all, place{}.count("cost", cost, cost+1))
	case string:
		all = append(all, place{}.without("cost"))
	}
	if ban, ok := z["ban"].(object); ok {
		at := place{"ban ", []any{"ban"}}
		if n, ok := ban["after"].(float64); ok {
			all = append(all, at.count("after", n, n+1))
		}
		if d, ok := durationIn(ban["duration"]); ok {
			all = append(all, at.time("duration", d, d/2))
		}
	}
	if p, ok := z["plan"].(object); ok {
		if p["default"] != nil {
			all = append(all, place{"plan ", []any{"plan"}}.without("default"))
		}
	}
	if charge, ok := z["charge"].(object); ok && len(charge) > 1 {
		for _, option := range slices.Sorted(maps.Keys(charge)) {
			all = append(all, place{"charge ", []any{"charge"}}.without(option))
		}
	}
	all = append(all, valueEdits(place{"charge", []any{"charge"}}, z["charge"])...)
	if on, ok := z["on_store_error"].(string); ok {
		other := "allow"
		if on == other {
			other = "deny"
		}
		all = append(all, place{}.set("on_store_error", on, other, other))
	}
	return all
}
