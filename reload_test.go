package caddyratelimit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestFailedLoadTouchesNothing: a config that fails releases nothing that it has not acquired.
// (In mholt's module, it empties the counters of the config that runs.)
func TestFailedLoadTouchesNothing(t *testing.T) {
	const good = `{"rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`
	running := caddytest.Load(t, good)
	for range 3 {
		if status, _ := caddytest.Serve(t, running, "203.0.113.7:1"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	for _, bad := range []string{
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h"}, "zone2": {"max_events": -1, "window": "1h"}}}`,
		`{"rate_limits": {"zone": {"max_events": 3}}}`,
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h", "burst": 7}}}`,
		`{"rate_limits": {"zone": {"max_events": 3, "window": "1h", "key": "{http.request.nonsense}"}}}`,
		`{"status": 200, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
		`{"store": {"backend": "memory", "max_keys": 1}, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
		`{"store": {"backend": "redis", "db": -1}, "rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`,
	} {
		ctx := caddytest.Config(t)
		if _, err := caddytest.TryLoad(ctx, bad); err == nil {
			t.Fatalf("loads: %s", bad)
		}
		if status, _ := caddytest.Serve(t, running, "203.0.113.7:1"); status != 429 {
			t.Fatalf("counters are gone after the failed load of %s", bad)
		}
	}
}

// TestCountersSurviveAReload: counters survive as long as a config names their zone.
func TestCountersSurviveAReload(t *testing.T) {
	text := func(events int) string {
		return fmt.Sprintf(`{"rate_limits": {"reloaded": {"max_events": %d, "window": "1h"}}}`, events)
	}
	old := caddytest.Load(t, text(2))
	caddytest.Serve(t, old, "203.0.113.7:1")
	caddytest.Serve(t, old, "203.0.113.7:1")
	raised := caddytest.Load(t, text(3)) // loaded before the old one is cleaned up, as in a reload
	caddytest.CleanUp(t, old)
	for i, want := range []int{200, 429} {
		if status, _ := caddytest.Serve(t, raised, "203.0.113.7:1"); status != want {
			t.Fatalf("request %d after the limit was raised by one: %d, want %d", i+1, status, want)
		}
	}
	if status, _ := caddytest.Serve(t, old, "203.0.113.7:1"); status != 429 {
		t.Fatalf("an old request, after its config has gone: %d", status)
	}
	caddytest.CleanUp(t, raised)
	anew := caddytest.Load(t, text(2))
	if status, _ := caddytest.Serve(t, anew, "203.0.113.7:1"); status != 200 {
		t.Fatalf("a zone that no config named for a while: %d, want it to start anew", status)
	}
}

func TestZoneDefinedTwice(t *testing.T) {
	zone := func(more string) string {
		return `{"rate_limits": {"twice": {"max_events": 2, "window": "1h"` + more + `}}}`
	}
	ctx := caddytest.Config(t)
	caddytest.LoadInto(t, ctx, zone(""))
	caddytest.LoadInto(t, ctx, zone(`, "cost": 2, "match": [{"path": ["/a"]}]`))
	for more, want := range map[string]string{
		`, "key": "{http.vars.client_ip}"`: `zone "twice": defined twice, without a key and with key "{http.vars.client_ip}"; zone names`,
		`, "algorithm": "token_bucket"`:    `zone "twice": defined twice, as sliding_window_log 2/1h and as token_bucket 2/1h; zone names`,
	} {
		_, err := caddytest.TryLoad(ctx, zone(more))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	caddytest.Load(t, zone(`, "algorithm": "fixed_window"`)) // another config may define it anew
}
