package respond

import (
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

const (
	placeholders = "http.rate_limit."
	exceeded     = "exceeded." // and the name of a zone
	betweenNames = "\x00"
)

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
	case exceeded + "name":
		return t.exceededName()
	case "zone":
		if t.zone == nil {
			return "", true
		}
		return t.zone.Name, true
	}
	if name, ok := strings.CutPrefix(name, exceeded); ok {
		return t.exceeds(name), true
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

// exceededName names the zone that refuses, or the dry run that would. Otherwise the placeholder is
// unknown, as in github.com/mholt/caddy-ratelimit, unless there were dry runs.
func (t *record) exceededName() (any, bool) {
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

// Note notes which zones refuse a request, or would without a dry run, for the placeholders that routes, upstreams and logs
// look at. Begin calls it.
func (p *Responder) Note(v *limiter.Verdict) {
	if !p.Around.Observe() {
		return
	}
	for i := range v.Entries {
		if o := v.Entries[i].Outcome; o.Refused() || o == outcome.DryRun {
			p.noteExceeded(v, v.Entries[i].Zone)
		}
	}
	for i := range v.Rejections {
		p.noteExceeded(v, v.Rejections[i].Zone)
	}
}

func (p *Responder) noteExceeded(v *limiter.Verdict, z *zone.Zone) {
	switch t := p.recordOf(v); {
	case t.exceeded == "":
		t.exceeded = z.Name
	case !t.exceeds(z.Name):
		t.exceeded += betweenNames + z.Name
	}
}

func (t *record) exceeds(name string) bool {
	return name != "" && slices.Contains(strings.Split(t.exceeded, betweenNames), name)
}
