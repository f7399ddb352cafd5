package caddyratelimit_test

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

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
