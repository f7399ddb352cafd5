package respond

import (
	"fmt"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// TestWhatIsSaid: the access log leaves out what there is nothing to say of, but not the numbers of a limit.
func TestWhatIsSaid(t *testing.T) {
	z := &zone.Zone{Place: zone.Place{Name: "z"}}
	policy := &zone.QuotaPolicy{Plan: "pro"}
	for _, c := range []struct {
		record record
		logged string
	}{
		{record{binding: binding{outcome: outcome.FailedOpen}}, "map[outcome:failed_open]"},
		{
			record{binding: binding{outcome: outcome.Rejected, zone: z}, wouldBe: z},
			"map[dry_run:z outcome:rejected zone:z]",
		},
		{
			record{binding: binding{zone: z, item: item{policy: &zone.QuotaPolicy{}}}},
			"map[cost:0 limit:0 outcome:allowed remaining:0 zone:z]",
		},
		{
			record{binding: binding{
				outcome: outcome.Limited, zone: z, item: item{policy: policy, remaining: 1}, quota: 9, cost: 3, retryAfter: 5,
			}},
			"map[cost:3 limit:9 outcome:limited plan:pro remaining:1 retry_after:5 zone:z]",
		},
	} {
		line := zapcore.NewMapObjectEncoder()
		if err := c.record.MarshalLogObject(line); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(line.Fields); got != c.logged {
			t.Errorf("the access log has %s, want %s", got, c.logged)
		}
	}
}
