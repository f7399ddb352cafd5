package caddyratelimit_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestBurstOfZero: a burst of 0 from a placeholder allows nothing, and a larger one as much as it says.
func TestBurstOfZero(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket"} {
		for burst, want := range map[string]string{"": "200 200 200 429 429", "0": "429 429 429 429 429", "1": "200 429 429 429 429", "-1": "403 403 403 403 403"} {
			h := caddytest.Load(t, `{"rate_limits": {"z`+burst+`": {"algorithm": "`+algorithm+`", "max_events": 5, "window": "1h", "burst": "{http.request.header.X-B} 3"}}}`)
			if got := caddytest.Statuses(t, h, 5, "X-B", burst); got != want {
				t.Errorf("%s, burst %q: %s, want %s", algorithm, burst, got, want)
			}
		}
	}
}
