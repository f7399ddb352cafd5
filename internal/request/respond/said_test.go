package respond

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// span keeps its attributes.
type span struct {
	noop.Span
	said string
}

func (*span) IsRecording() bool { return true }

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	for _, one := range all {
		s.said += fmt.Sprintf("%s=%v ", one.Key, one.Value.AsInterface())
	}
}

// TestWhatIsSaid: the access log and a trace leave out what there is nothing to say of, but not the numbers of a limit.
func TestWhatIsSaid(t *testing.T) {
	z := &zone.Zone{Place: zone.Place{Name: "z"}}
	policy := &zone.QuotaPolicy{Plan: "pro"}
	for _, c := range []struct {
		record        record
		logged, trace string
	}{
		{record{binding: binding{outcome: outcome.FailedOpen}}, "map[outcome:failed_open]", "rate_limit.outcome=failed_open "},
		{
			record{binding: binding{outcome: outcome.Rejected, zone: z}, wouldBe: z},
			"map[dry_run:z outcome:rejected zone:z]", "rate_limit.outcome=rejected rate_limit.zone=z rate_limit.dry_run=z ",
		},
		{
			record{binding: binding{zone: z, item: item{policy: &zone.QuotaPolicy{}}}},
			"map[cost:0 limit:0 outcome:allowed remaining:0 zone:z]", "rate_limit.outcome=allowed rate_limit.zone=z rate_limit.limit=0 rate_limit.remaining=0 ",
		},
		{
			record{binding: binding{
				outcome: outcome.Limited, zone: z, item: item{policy: policy, remaining: 1}, quota: 9, cost: 3, retryAfter: 5,
			}},
			"map[cost:3 limit:9 outcome:limited plan:pro remaining:1 retry_after:5 zone:z]",
			"rate_limit.outcome=limited rate_limit.zone=z rate_limit.limit=9 rate_limit.remaining=1 ",
		},
	} {
		line := zapcore.NewMapObjectEncoder()
		if err := c.record.MarshalLogObject(line); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(line.Fields); got != c.logged {
			t.Errorf("the access log has %s, want %s", got, c.logged)
		}
		s := new(span)
		r := httptest.NewRequest("GET", "/", nil)
		traced := placeholder.RequestOf(r.WithContext(trace.ContextWithSpan(context.Background(), s)))
		traced.Vars = map[string]any{traceVar: "1"}
		if c.record.toTrace(&traced); s.said != c.trace {
			t.Errorf("the trace has %s, want %s", s.said, c.trace)
		}
	}
}
