package caddyratelimit

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

const placeholders = "http.rate_limit."

// placeholder answers Caddy's replacer, only when somebody asks. If nothing was decided
// the values are empty, rather than unknown.
func (t *told) placeholder(name string) (any, bool) {
	name, ok := strings.CutPrefix(name, placeholders)
	if !ok {
		return nil, false
	}
	switch name {
	case "allowed":
		return t.outcome.Passes(), true
	case "exceeded.name":
		return t.exceeded()
	case "zone":
		if t.zone == nil {
			return "", true
		}
		return t.zone.Name, true
	}
	if t.grant == nil {
		return "", slices.Contains(ofDecision, name)
	}
	switch name {
	case "limit":
		return t.decision.Quota, true
	case "remaining":
		return t.decision.Remaining, true
	case "reset":
		return t.reset(), true
	case "retry_after":
		return t.retryAfter, true
	case "cost":
		return t.cost, true
	case "plan":
		return t.grant.Plan, true
	}
	return nil, false
}

// ofDecision are the placeholders that say something only of what was decided.
var ofDecision = []string{"limit", "remaining", "reset", "retry_after", "cost", "plan"}

// exceeded names the zone that refuses, or the dry run that would. It is unknown
// otherwise, as in the module that it comes from, unless there were dry runs.
func (t *told) exceeded() (any, bool) {
	switch {
	case t.zone != nil && !t.outcome.Passes():
		return t.zone.Name, true
	case t.would != nil:
		return t.would.Name, true
	case t.tried:
		return "", true
	}
	return nil, false
}

// toAccessLog adds the decision to the request's line, as it is when that is written.
func (t *told) toAccessLog(r *http.Request) {
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Logs == nil {
		return
	}
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("rate_limit", t))
	}
}

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (t *told) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("outcome", outcome.Names[t.outcome])
	if t.would != nil {
		to.AddString("dry_run", t.would.Name)
	}
	if t.zone == nil {
		return nil
	}
	to.AddString("zone", t.zone.Name)
	if t.grant == nil {
		return nil
	}
	to.AddInt64("limit", t.decision.Quota)
	to.AddInt64("remaining", t.decision.Remaining)
	to.AddInt64("cost", t.cost)
	if plan := t.grant.Plan; plan != "" {
		to.AddString("plan", plan)
	}
	if t.retryAfter > 0 {
		to.AddInt64("retry_after", t.retryAfter)
	}
	return nil
}

// toTrace adds the decision to the span of Caddy's tracing directive, which leaves its
// number in the request's variables. To ask for a span where there is none takes longer.
func (t *told) toTrace(r *http.Request) {
	if _, traced := t.vars["trace_id"]; !traced {
		return
	}
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("rate_limit.outcome", outcome.Names[t.outcome]))
	if t.zone != nil {
		span.SetAttributes(attribute.String("rate_limit.zone", t.zone.Name))
	}
	if t.would != nil {
		span.SetAttributes(attribute.String("rate_limit.dry_run", t.would.Name))
	}
	if t.grant != nil {
		span.SetAttributes(
			attribute.Int64("rate_limit.limit", t.decision.Quota),
			attribute.Int64("rate_limit.remaining", t.decision.Remaining),
		)
	}
}
