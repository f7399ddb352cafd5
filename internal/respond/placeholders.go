package respond

import (
	"slices"
	"strings"
)

const placeholders = "http.rate_limit."

// placeholder is a function for Caddy's replacer, which calls it only when a placeholder is used.
// If nothing was decided, the values are empty and not unknown.
func (t *record) placeholder(name string) (any, bool) {
	name, ok := strings.CutPrefix(name, placeholders)
	if !ok {
		return nil, false
	}
	switch name {
	case "allowed":
		return t.outcome.Passes(), true
	case "exceeded.name":
		return t.exceeded()
	case "over":
		return strings.Join(t.overNames(), ","), true
	case "zone":
		if t.zone == nil {
			return "", true
		}
		return t.zone.Name, true
	}
	if t.policy == nil {
		return "", slices.Contains(ofDecision, name)
	}
	switch name {
	case "limit":
		return t.numbers.quota, true
	case "remaining":
		return t.numbers.remaining, true
	case "reset":
		return t.reset(), true
	case "retry_after":
		return t.retryAfter, true
	case "cost":
		return t.cost, true
	case "plan":
		return t.policy.Plan, true
	}
	return nil, false
}

// ofDecision are the placeholders that have a value only if a store has decided.
var ofDecision = []string{"limit", "remaining", "reset", "retry_after", "cost", "plan"}

// exceeded names the zone that refuses, or the dry run that would. Otherwise the placeholder is
// unknown, as in github.com/mholt/caddy-ratelimit, unless there were dry runs.
func (t *record) exceeded() (any, bool) {
	switch {
	case t.zone != nil && !t.outcome.Passes():
		return t.zone.Name, true
	case t.wouldBe != nil:
		return t.wouldBe.Name, true
	case t.dryRuns:
		return "", true
	}
	return nil, false
}
