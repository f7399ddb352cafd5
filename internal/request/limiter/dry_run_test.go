package limiter_test

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestDryRunsOfRefusedRequests: a request that another zone refuses costs nothing in a dry run, as
// it would cost nothing if the dry run were enforced.
func TestDryRunsOfRefusedRequests(t *testing.T) {
	caddytest.EachStore(t, func(t *testing.T, kept *caddytest.Kept) {
		for _, algorithm := range caddytest.Refunding {
			h := caddytest.Load(t, fmt.Sprintf(`{%[1]s"log": "off", "rate_limits": {
				"a enforced %[2]s": {"max_events": 2, "window": "1h", "match": [{"path": ["/path"]}]},
				"b dry %[2]s": {"algorithm": %[2]q, "max_events": 100, "window": "1h", "enforce": 0}
			}}`, kept.Option(), algorithm))
			var used int64
			for range 5 {
				caddytest.Serve(t, h, "203.0.113.7:1")
				// A bucket gives less back if it was charged again meanwhile.
				used = kept.Used(t, "b dry "+algorithm, "")
			}
			if used != 2 {
				t.Errorf("%s: 5 requests, of which 2 passed, were charged %d in the dry run, want 2", algorithm, used)
			}
		}
	})
}
