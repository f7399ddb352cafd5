package walk

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Describe returns matcher sets in words, such as "host example.com, path /api/*". It is empty if there
// are none, which match all requests.
func Describe(sets caddyhttp.MatcherSets) string {
	all := make([]string, len(sets))
	for i, set := range sets {
		all[i] = describeSet(set)
	}
	return strings.Join(all, " or ")
}

func describeSet(set caddyhttp.MatcherSet) string {
	words := make([]string, len(set))
	for i, m := range set {
		words[i] = describe(m)
	}
	slices.Sort(words) // Caddy keeps the matchers of a set in any order
	return strings.Join(words, ", ")
}

// maxDescription bounds the description of a matcher, in bytes.
const maxDescription = 60

// describe returns a matcher in words: its name and its values.
func describe(matcher any) string {
	name := fmt.Sprintf("%T", matcher)
	if m, ok := matcher.(caddy.Module); ok {
		name = m.CaddyModule().ID.Name()
	}
	if not, ok := matcher.(*caddyhttp.MatchNot); ok {
		return strings.TrimSpace("not " + Describe(not.MatcherSets))
	}
	text, err := json.Marshal(matcher)
	var value any
	if err != nil || json.Unmarshal(text, &value) != nil {
		return name
	}
	described := strings.TrimSpace(name + " " + words(value))
	if len(described) > maxDescription {
		described = strings.ToValidUTF8(described[:maxDescription], "") + "..."
	}
	return described
}

// words returns the values in JSON, separated by spaces.
func words(value any) string {
	var all []string
	switch v := value.(type) {
	case nil:
	case string:
		all = []string{v}
	case []any:
		for _, one := range v {
			all = append(all, words(one))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text := words(v[name])
			switch name {
			case "name":
				continue
			case "ranges", "pattern", "expr": // the only thing that the matcher compares
			default:
				text = strings.TrimSpace(name + " " + text)
			}
			all = append(all, text)
		}
	default:
		all = []string{fmt.Sprint(v)}
	}
	return strings.Join(slices.DeleteFunc(all, func(text string) bool { return text == "" }), " ")
}

// Match matches a request against matcher sets.
type Match func(caddyhttp.MatcherSets, *http.Request) (bool, error)

// Misses returns, of each matcher set, the first matcher that does not match the request.
func Misses(sets caddyhttp.MatcherSets, r *http.Request, match Match) (misses []string) {
	for _, set := range sets {
		for _, m := range set {
			if matches, err := match(caddyhttp.MatcherSets{{m}}, r); err != nil || !matches {
				misses = append(misses, describe(m))
				break
			}
		}
	}
	return misses
}

// Hit returns the first matcher set that matches the request, in words.
func Hit(sets caddyhttp.MatcherSets, r *http.Request, match Match) string {
	for _, set := range sets {
		if matches, err := match(caddyhttp.MatcherSets{set}, r); err == nil && matches {
			return describeSet(set)
		}
	}
	return ""
}
