package respond

import (
	"fmt"
	"testing"
	"time"

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

// TestRetryAfter: the wait is in whole seconds, rounded up. Without one there is no Retry-After. Jitter adds to it.
func TestRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]int64{
		0: 0, time.Microsecond: 1, time.Second: 1, time.Second + 1: 2, 59*time.Second + 1: 60,
	} {
		if got := new(Responder).retryAfter(wait); got != want {
			t.Errorf("%v: got %d, want %d", wait, got, want)
		}
	}
	jittery := Responder{Config: Config{Jitter: 0.5}}
	seen := make(map[int64]bool)
	for range 1000 {
		got := jittery.retryAfter(10 * time.Second)
		if got < 10 || got > 15 {
			t.Fatalf("10s with jitter 0.5: got %d", got)
		}
		seen[got] = true
	}
	if len(seen) < 4 {
		t.Errorf("jitter gave only %v", seen)
	}
}
