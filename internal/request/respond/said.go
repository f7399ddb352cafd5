package respond

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// What is said of a decision, where there is something to say, by its names in [record.field].
var (
	inAccessLog = []string{
		"outcome", "dry_run", "zone", "limit", "remaining", "cost", "plan", "retry_after",
	}
	inPlaceholder = []string{"zone", "limit", "remaining", "reset", "retry_after", "cost", "plan"}
)

// field returns one of the things that are said of a decision, which is skipped if no store has decided.
func (t *record) field(name string) zap.Field {
	switch name {
	case "outcome":
		return zap.String(name, outcome.Names[t.outcome])
	case "dry_run":
		return zap.String(name, nameOf(t.wouldBe))
	case "zone":
		return zap.String(name, nameOf(t.zone))
	}
	if t.policy == nil {
		return zap.Skip()
	}
	switch name {
	case "limit":
		return zap.Int64(name, t.quota)
	case "remaining":
		return zap.Int64(name, t.remaining)
	case "reset":
		return zap.Int64(name, t.untilFull())
	case "cost":
		return zap.Int64(name, t.cost)
	case "plan":
		return zap.String(name, t.policy.Plan)
	case "retry_after":
		return zap.Int64(name, t.retryAfter)
	}
	return zap.Skip()
}

func nameOf(z *zone.Zone) string {
	if z == nil {
		return ""
	}
	return z.Name
}

// saysNothing reports whether a field is left out. The numbers of a limit are not, also if they are 0.
func saysNothing(f zap.Field) bool {
	switch f.Key {
	case "limit", "remaining", "cost":
		return false
	}
	return f.Integer == 0 && f.String == ""
}

// toAccessLog adds the record to the request's line in the access log. The line shows what is
// decided by the time when it is written.
func (t *record) toAccessLog(r *http.Request) {
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("rate_limit", t))
	}
}

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (t *record) MarshalLogObject(to zapcore.ObjectEncoder) error {
	for _, name := range inAccessLog {
		if f := t.field(name); !saysNothing(f) {
			f.AddTo(to)
		}
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
func (t *record) placeholder(name string) (any, bool) {
	name, ok := strings.CutPrefix(name, placeholders)
	switch {
	case !ok:
		return nil, false
	case name == "allowed":
		return t.outcome.Passes(), true
	case name == exceeded+"name":
		return t.exceededName()
	case slices.Contains(inPlaceholder, name):
		f := t.field(name)
		if f.Type == zapcore.Int64Type {
			return f.Integer, true
		}
		return f.String, true
	}
	if name, ok = strings.CutPrefix(name, exceeded); ok {
		return t.exceeds(name), true
	}
	return nil, false
}

// exceededName names the zone that refuses, or the dry run that would. Otherwise the placeholder is
// unknown, as in github.com/mholt/caddy-ratelimit, unless there were dry runs.
func (t *record) exceededName() (any, bool) {
	if t.zone != nil && !t.outcome.Passes() {
		return t.zone.Name, true
	}
	return nameOf(t.wouldBe), t.dryRuns
}

// Note notes which zones refuse a request, or would without a dry run, for the placeholders that routes, upstreams
// and logs look at. Begin calls it.
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
