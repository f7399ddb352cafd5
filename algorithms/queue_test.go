package algorithms_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestFullQueueAfterTheClockStepsBack: a request that only waits too long for its turn may come again when the wait is short
// enough, even if the clock is behind the first charge.
func TestFullQueueAfterTheClockStepsBack(t *testing.T) {
	k := newKey(t, "leaky_bucket")
	p, err := k.algorithm.Prepare(algorithms.Limit{Events: 10, Window: time.Millisecond, Burst: 20, Mode: algorithms.ModeQueue, MaxWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	now := start.UnixMicro()
	if d := k.take(p, now, 8); !d.Allowed {
		t.Fatalf("the first request: %+v", d)
	}
	now -= 222
	d := k.take(p, now, 2)
	if want := 22 * time.Microsecond; d.Allowed || d.RetryAfter != want {
		t.Fatalf("a turn in %v: %+v, want a retry after %v", 1022*time.Microsecond, d, want)
	}
	if d := k.take(p, now+d.RetryAfter.Microseconds(), 2); !d.Allowed {
		t.Errorf("after that: %+v", d)
	}
}
