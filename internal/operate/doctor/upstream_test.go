package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestUpstream: the doctor says since when the upstream is the bottleneck, and whether its requests differ much.
func TestUpstream(t *testing.T) {
	at := time.Date(2026, 11, 26, 14, 2, 11, 0, time.Local)
	examine := func(a adminapi.Adaptive) (found []string) {
		for _, f := range Examine(&Facts{Adaptive: []adminapi.Adaptive{a}}).Findings {
			found = append(found, f.Found)
		}
		return found
	}
	const mixed = "quick and slow requests share the limit, so it follows the upstream slowly: a slot is taken for 208ms on average, and most of the time by requests that take 961ms"
	for want, a := range map[string]adminapi.Adaptive{
		"the upstream is the bottleneck since 2026-11-26 14:02:11: 21 requests run, as many as it can use, and 40 wait": {Since: &at, Running: 21, Waiting: 40},
		"the upstream failed 200 of 1000 requests": {Failed: 200, Useful: 700, Left: 100},
		"": {Limit: 8, Failed: 1},
		"the upstream is the bottleneck: 0 requests run, as many as it can use, and 9 wait\n" + mixed: {Waiting: 9, Latency: 0.208, Spread: 4.62},
		"the upstream is the bottleneck: 0 requests run, as many as it can use, and 8 wait":           {Waiting: 8, Latency: 0.2, Spread: 2.1},
	} {
		if got := strings.Join(examine(a), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
