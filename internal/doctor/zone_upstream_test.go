package doctor

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestUpstream: the doctor says since when the upstream is the bottleneck, and whether its requests differ much.
func TestUpstream(t *testing.T) {
	at := time.Date(2026, 11, 26, 14, 2, 11, 0, time.Local)
	for want, a := range map[string]adminapi.Adaptive{
		"the upstream is the bottleneck since 2026-11-26 14:02:11: 21 requests run, as many as it can use, and 40 wait": {Since: &at, Running: 21, Waiting: 40},
		"the upstream failed 200 of 1000 requests":          {Failed: 200, Useful: 700, Left: 100},
		"no request waits for the upstream; its limit is 8": {Limit: 8, Failed: 1},
	} {
		found := overloads(&a)
		if len(found) != 1 || found[0].found != want {
			t.Errorf("%+v, want %q", found, want)
		}
	}
	found := overloads(&adminapi.Adaptive{Waiting: 9, Latency: 0.208, Spread: 4.62})
	if len(found) != 2 || found[1].found != "quick and slow requests share the limit, so it follows the upstream slowly: a slot is taken for 208ms on average, and most of the time by requests that take 961ms" {
		t.Errorf("%+v", found)
	}
	if found := overloads(&adminapi.Adaptive{Waiting: 9, Latency: 0.2, Spread: 2.1}); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}
