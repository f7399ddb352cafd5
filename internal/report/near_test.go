package report_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestNearLimit: requests that pass near the limit are counted. A zone has one event in a second, and there is no
// line. What refuses, and what only asks, is not near.
func TestNearLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, logs := caddytest.Logged(t)
		near := caddytest.Listen(t, ctx, "rate_limit_near_limit")
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
		var events string
		for _, e := range near.Events {
			events += fmt.Sprint(e.Data["zone"], " ", e.Data["key"], " ", e.Data["remaining"], "/", e.Data["limit"], ";")
			if _, ok := e.Data["wait"]; ok {
				t.Error("the event has a wait, though nothing waits")
			}
		}
		if want := "each 203.0.113.7 2/10;each 203.0.113.8 2/10;"; events != want {
			t.Errorf("events %s, want %s", events, want)
		}
		h.Cleanup()
		for _, line := range logs.All() {
			if line.ContextMap()["zone"] == "each" && line.Message != "rate limit exceeded" && line.Message != "rate limit exceeded again" {
				t.Errorf("logged %q", line.Message)
			}
		}
	})
}
