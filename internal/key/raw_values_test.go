package key_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestRawValues: with raw_values, the key has the bytes that the client sent.
func TestRawValues(t *testing.T) {
	for raw, want := range map[string]int{`"raw_values": true, `: 200, `"raw_values": false, `: 429, "": 429} {
		h := caddytest.Load(t, `{"rate_limits": {"raw": {`+raw+`"key": "{http.request.uri.path}", "max_events": 1, "window": "1h"}}}`)
		caddytest.AskFrom(t, h, "203.0.113.7", "/path")
		if status, _ := caddytest.AskFrom(t, h, "203.0.113.7", "/PATH"); status != want {
			t.Errorf("%s: got %d, want %d", raw, status, want)
		}
		caddytest.CleanUp(t, h)
	}
}
