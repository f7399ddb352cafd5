package cases

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// itself is a zone, as the object that has an option.
func itself(z object) object { return z }

// inside returns an object in a zone, as the one that has an option.
func inside(name string) func(object) object {
	return func(z object) object { of, _ := z[name].(object); return of }
}

var placeholders = regexp.MustCompile(`\{[^{}]+\}`)

// keyEdits returns the changes of what distinguishes clients.
func keyEdits(z object) (all []edit) {
	key, _ := z["key"].(string)
	if key == "" {
		return nil
	}
	all = append(all, without("", "key", itself))
	if parts := placeholders.FindAllString(key, -1); len(parts) > 1 {
		for _, part := range parts {
			shorter := strings.TrimSpace(strings.Replace(key, part, "", 1))
			all = append(all, edit{"key without " + part, func(z object) bool { z["key"] = shorter; return true }})
		}
	}
	for option, width := range map[string]float64{"ipv4_prefix": 32, "ipv6_prefix": 128} {
		if n, ok := z[option].(float64); ok && n < width {
			all = append(all, set("", option, fmt.Sprintf("%.0f", n), fmt.Sprintf("%.0f", n+1), n+1, itself))
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
	all = append(all, without("", option, itself))
	for i := range sets {
		in := func(z object) object {
			sets, _ := z[option].([]any)
			if i >= len(sets) {
				return nil
			}
			of, _ := sets[i].(object)
			return of
		}
		where := option
		if len(sets) > 1 {
			where += " " + strconv.Itoa(i+1)
			all = append(all, edit{where + " removed", func(z object) bool {
				if sets, _ := z[option].([]any); i < len(sets) {
					z[option] = slices.Delete(slices.Clone(sets), i, i+1)
				}
				return true
			}})
		}
		matchers, _ := sets[i].(object)
		for _, name := range slices.Sorted(maps.Keys(matchers)) {
			if len(matchers) > 1 {
				all = append(all, without(where+": ", name, in))
			}
			all = append(all, valueEdits(where+": "+name, matchers[name], func(z object) (object, string) { return in(z), name })...)
		}
	}
	return all
}

// valueEdits returns the removals of one value from a list, or from the list in an object.
func valueEdits(where string, value any, in func(object) (of object, name string)) (all []edit) {
	switch value := value.(type) {
	case []any:
		for i := range value {
			if len(value) < 2 {
				break
			}
			all = append(all, edit{fmt.Sprintf("%s without %v", where, value[i]), func(z object) bool {
				of, name := in(z)
				if list, _ := of[name].([]any); i < len(list) {
					of[name] = slices.Delete(slices.Clone(list), i, i+1)
				}
				return true
			}})
		}
	case object:
		for _, inner := range slices.Sorted(maps.Keys(value)) {
			all = append(all, valueEdits(where+" "+inner, value[inner], func(z object) (object, string) {
				of, name := in(z)
				below, _ := of[name].(object)
				return below, inner
			})...)
		}
	}
	return all
}

// removable are options whose removal is a change.
var removable = []string{
	"ban", "charge_on_response", "cost_broken_off", "cost_header", "cost_request", "cost_response", "dry_run", "enforce", "missing_key",
	"overrides",
}

// statuses are options with a status.
var statuses = []string{"block_status", "invalid_limit", "missing_key_status"}

// policyEdits returns the changes of the rest of a zone.
func policyEdits(z object) (all []edit) {
	for _, option := range removable {
		if z[option] != nil && z[option] != false {
			all = append(all, without("", option, itself))
		}
	}
	for _, option := range statuses {
		if n, ok := z[option].(float64); ok {
			all = append(all, set("", option, fmt.Sprintf("%.0f", n), fmt.Sprintf("%.0f", n+1), n+1, itself))
		}
	}
	switch cost := z["cost"].(type) {
	case float64:
		all = append(all, set("", "cost", fmt.Sprintf("%.0f", cost), fmt.Sprintf("%.0f", cost+1), cost+1, itself))
	case string:
		all = append(all, without("", "cost", itself))
	}
	if ban, ok := z["ban"].(object); ok {
		if n, ok := ban["after"].(float64); ok {
			was := fmt.Sprintf("%.0f", n)
			all = append(all, set("ban ", "after", was, fmt.Sprintf("%.0f", n+1), n+1, inside("ban")))
		}
		if d, ok := durationIn(ban["duration"]); ok {
			all = append(all, set("ban ", "duration", duration.Format(d), duration.Format(d/2), float64(d/2), inside("ban")))
		}
	}
	if p, ok := z["plan"].(object); ok {
		for _, option := range []string{"default", "reject"} {
			if p[option] != nil {
				all = append(all, without("plan ", option, inside("plan")))
			}
		}
	}
	all = append(all, valueEdits("charge_on_response", z["charge_on_response"], func(z object) (object, string) { return z, "charge_on_response" })...)
	if on, ok := z["on_store_error"].(string); ok {
		other := "allow"
		if on == other {
			other = "deny"
		}
		all = append(all, set("", "on_store_error", on, other, other, itself))
	}
	return all
}
