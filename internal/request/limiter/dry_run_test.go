package limiter_test

import (
	"fmt"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestDryRunsOfRefusedRequests: a request that another zone refuses costs nothing in a dry run, as
// it would cost nothing if the dry run were enforced.
func TestDryRunsOfRefusedRequests(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		h := caddytest.Load(t, fmt.Sprintf(`{%[1]s"log": "off", "rate_limits": {
			"a enforced %[2]s": {"max_events": 2, "window": "1h", "match": [{"path": ["/path"]}]},
			"b dry %[2]s": {"algorithm": %[2]q, "max_events": 100, "window": "1h", "enforce": 0}
		}}`, kept.Option(), algorithm))
		for range 5 {
			caddytest.Serve(t, h, "203.0.113.7:1")
		}
		if used := kept.Used(t, "b dry "+algorithm, ""); used != 2 {
			t.Errorf("%s: 5 requests, of which 2 passed, were charged %d in the dry run, want 2", algorithm, used)
		}
	}
}
