package respond

import (
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

func nameOf(z *zone.Zone) string {
	if z == nil {
		return ""
	}
	return z.Name
}

// MarshalLogObject implements [zapcore.ObjectMarshaler], for the access log. It shows what is decided by the time when the line is
// written, and leaves out what there is nothing to say of.
func (t *record) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("outcome", outcome.Names[t.outcome])
	if t.wouldBe != nil {
		to.AddString("dry_run", t.wouldBe.Name)
	}
	if t.zone != nil {
		to.AddString("zone", t.zone.Name)
	}
	if t.policy == nil {
		return nil
	}
	to.AddInt64("limit", t.quota)
	to.AddInt64("remaining", t.remaining)
	to.AddInt64("cost", t.cost)
	if t.policy.Plan != "" {
		to.AddString("plan", t.policy.Plan)
	}
	if t.retryAfter > 0 {
		to.AddInt64("retry_after", t.retryAfter)
	}
	return nil
}

const (
	placeholders = "http.rate_limit."
	exceeded     = "exceeded." // and the name of a zone
	betweenNames = "\x00"
)

// placeholder is a function for Caddy's replacer, which calls it only when a placeholder is used.
// If nothing was decided, the values are empty and not unknown.
func (t *record) placeholder(name string) (value any, known bool) {
	name, ok := strings.CutPrefix(name, placeholders)
	if !ok {
		return nil, false
	}
	switch name {
	case "allowed":
		return t.outcome.Passes(), true
	case "zone":
		return nameOf(t.zone), true
	case exceeded + "name": // of the zone that refuses, or the dry run that would
		if t.zone != nil && !t.outcome.Passes() {
			return t.zone.Name, true
		}
		return nameOf(t.wouldBe), t.dryRuns // unknown without dry runs, as in github.com/mholt/caddy-ratelimit
	case "limit", "remaining", "reset", "retry_after", "cost":
		value = t.number(name)
	case "plan":
	default:
		name, ok = strings.CutPrefix(name, exceeded)
		return t.exceeds(name), ok
	}
	switch {
	case t.policy == nil: // no store has decided
		value = ""
	case name == "plan":
		value = t.policy.Plan
	}
	return value, true
}

// Note notes which zones refuse a request, or would without a dry run, for the placeholders that routes, upstreams
// and logs look at. Begin calls it.
func (p *Responder) Note(v *limiter.Verdict) {
	if !p.Around.Observe() {
		return
	}
	for i := range v.Entries {
		if v.Entries[i].Outcome.WouldRefuse() {
			p.noteExceeded(v, v.Entries[i].Zone)
		}
	}
	for i := range v.Rejections {
		p.noteExceeded(v, v.Rejections[i].Zone)
	}
}

func (p *Responder) noteExceeded(v *limiter.Verdict, z *zone.Zone) {
	switch t := p.recordOf(v, new(record)); {
	case t.exceeded == "":
		t.exceeded = z.Name
	case !t.exceeds(z.Name):
		t.exceeded += betweenNames + z.Name
	}
}

func (t *record) exceeds(name string) bool {
	return name != "" && slices.Contains(strings.Split(t.exceeded, betweenNames), name)
}
