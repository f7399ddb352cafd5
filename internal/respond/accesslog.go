package respond

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// toAccessLog adds the record to the request's line in the access log. The line shows what is
// decided by the time when it is written.
func (t *record) toAccessLog(r *http.Request) {
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Add(zap.Object("rate_limit", t))
	}
}

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (t *record) MarshalLogObject(to zapcore.ObjectEncoder) error {
	to.AddString("outcome", outcome.Names[t.outcome])
	if t.grpcCode > 0 {
		to.AddUint8("grpc_status", t.grpcCode)
	}
	if t.wouldBe != nil {
		to.AddString("dry_run", t.wouldBe.Name)
	}
	if t.zone == nil {
		return nil
	}
	to.AddString("zone", t.zone.Name)
	if t.policy == nil {
		return nil
	}
	to.AddInt64("limit", t.numbers.quota)
	to.AddInt64("remaining", t.numbers.remaining)
	to.AddInt64("cost", t.cost)
	if plan := t.policy.Plan; plan != "" {
		to.AddString("plan", plan)
	}
	if t.retryAfter > 0 {
		to.AddInt64("retry_after", t.retryAfter)
	}
	if t.never {
		to.AddBool("never", true)
	}
	if t.queueFull {
		to.AddBool("queue_full", true)
	}
	return nil
}
