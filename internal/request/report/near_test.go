package report_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestNearLimit: requests that pass near the limit are counted, and there is no line. What refuses, and what only asks, is not near.
func TestNearLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"log_key": true, "rate_limits": {
			"all": {"max_events": 1000, "window": "1h"},
			"each": {"key": "{http.request.remote.host}", "max_events": 10, "window": "1h"},
			"free": {"max_events": 1, "window": "1h", "cost": 0},
			"tried": {"max_events": 5, "window": "1h", "enforce": 0}
		}}`)
		for _, client := range []string{"203.0.113.7:1", "203.0.113.8:1"} {
			for range 12 {
				caddytest.Serve(t, h, client)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		got := caddytest.Scrape(t, ctx)
		for zone, want := range map[string]float64{"all": 0, "each": 2 * 3, "free": 0, "tried": 2} {
			if n := got["near_limit_requests_total{zone="+zone+"}"]; n != want {
				t.Errorf("zone %s: %v near the limit, want %v", zone, n, want)
			}
		}
		h.Cleanup()
		for _, line := range logs.All() {
			if line.ContextMap()["zone"] == "each" && line.Message != "rate limit exceeded" && line.Message != "rate limit exceeded again" {
				t.Errorf("logged %q", line.Message)
			}
		}
	})
}
