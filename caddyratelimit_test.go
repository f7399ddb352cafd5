package caddyratelimit_test

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestFailedLoadTouchesNothing: a config that does not load changes no counters of the config that
// runs, whatever Provision had done before it failed.
func TestFailedLoadTouchesNothing(t *testing.T) {
	const good = `{"rate_limits": {"zone": {"max_events": 3, "window": "1h"}}}`
	running := caddytest.Load(t, good)
	for range 3 {
		if status, _ := caddytest.Serve(t, running, "203.0.113.7:1"); status != 200 {
			t.Fatalf("status %d, want 200", status)
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
			t.Fatalf("this config loads: %s", bad)
		}
		if status, _ := caddytest.Serve(t, running, "203.0.113.7:1"); status != 429 {
			t.Fatalf("the counters are lost after the failed load of %s", bad)
		}
	}
}

// TestCountersSurviveAReload: the counters of a zone end with the last config that has the zone.
func TestCountersSurviveAReload(t *testing.T) {
	config := func(events int) string {
		return fmt.Sprintf(`{"rate_limits": {"reloaded": {"max_events": %d, "window": "1h"}}}`, events)
	}
	old := caddytest.Load(t, config(2))
	caddytest.Serve(t, old, "203.0.113.7:1")
	caddytest.Serve(t, old, "203.0.113.7:1")
	raised := caddytest.Load(t, config(3)) // provisioned before the old one is cleaned up
	caddytest.CleanUp(t, old)
	for i, want := range []int{200, 429} {
		if status, _ := caddytest.Serve(t, raised, "203.0.113.7:1"); status != want {
			t.Fatalf("request %d after the limit was raised by one: %d, want %d", i+1, status, want)
		}
	}
	if status, _ := caddytest.Serve(t, old, "203.0.113.7:1"); status != 429 {
		t.Fatalf("a request to a handler that was cleaned up: %d, want 429", status)
	}
	caddytest.CleanUp(t, raised)
	again := caddytest.Load(t, config(2))
	if status, _ := caddytest.Serve(t, again, "203.0.113.7:1"); status != 200 {
		t.Fatalf("a zone that no config had for a while: %d, want 200", status)
	}
}

// TestTooManyZones: a handler has at most 255 zones.
func TestTooManyZones(t *testing.T) {
	var zones []string
	for i := range 256 {
		zones = append(zones, fmt.Sprintf(`"zone %d": {"max_events": 1, "window": "1s"}`, i))
	}
	_, err := caddytest.TryLoad(caddytest.Config(t), `{"rate_limits": {`+strings.Join(zones, ",")+`}}`)
	if err == nil || !strings.Contains(err.Error(), "a rate_limit handler takes at most 255 zones, got 256") {
		t.Errorf("got %v, want an error about 256 zones", err)
	}
}

// TestEarlyData: before the TLS handshake is complete, an address may be forged, so neither it nor a part of it is a key.
func TestEarlyData(t *testing.T) {
	for key, want := range map[string]int{
		"{http.vars.client_ip}": 425, "{http.request.remote.host}": 425, "{http.request.remote.host/24,64}": 425, "{http.request.host}": 200,
	} {
		h := caddytest.Load(t, `{"rate_limits": {"early `+key[1:]+`": {"max_events": 3, "window": "1h", "key": "`+key+`"}}}`)
		r := caddytest.Request(httptest.NewRecorder(), "203.0.113.7:1")
		r.TLS = new(tls.ConnectionState)
		if got := caddytest.Status(h, r); got != want {
			t.Errorf("%s: status %d, want %d", key, got, want)
		}
	}
}
