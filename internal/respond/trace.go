package respond

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// traceVar is the variable that Caddy's tracing directive sets.
const traceVar = "trace_id"

// toTrace adds the record to the span of Caddy's tracing directive, if there is one around the handler.
// To look for the variable that it sets is faster than to look for a span.
func (p *Responder) toTrace(t *record, r *placeholder.Request) {
	if !p.Around.Trace() {
		return
	}
	if _, traced := r.Vars[traceVar]; !traced {
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
	if t.wouldBe != nil {
		span.SetAttributes(attribute.String("rate_limit.dry_run", t.wouldBe.Name))
	}
	if t.policy != nil {
		span.SetAttributes(
			attribute.Int64("rate_limit.limit", t.numbers.quota),
			attribute.Int64("rate_limit.remaining", t.numbers.remaining),
		)
	}
}
