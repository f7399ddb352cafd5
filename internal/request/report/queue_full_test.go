package report_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestFullQueueIsTold: the log tells a queue without a place from a limit that is used up, and
// from a cost that no queue has a place for.
func TestFullQueueIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		limit  string
		refuse int // the request that is refused
		full   bool
	}{
		"queue":    {`"algorithm": "leaky_bucket", "mode": "queue", "max_events": 1, "burst": 1, "window": "1h"`, 1, true},
		"max_wait": {`"algorithm": "leaky_bucket", "mode": "queue", "max_events": 1, "burst": 5, "window": "1h", "max_wait": "1m"`, 1, true},
		"meter":    {`"algorithm": "leaky_bucket", "max_events": 1, "window": "1h"`, 1, false},
		"cost":     {`"algorithm": "leaky_bucket", "mode": "queue", "max_events": 1, "burst": 5, "window": "1h", "cost": 6`, 0, false},
	} {
		ctx, logs := caddytest.Logged(t)
		h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"`+name+`": {`+c.limit+`}}}`)
		for i := range c.refuse + 1 {
			w := httptest.NewRecorder()
			r := caddytest.Request(w, "203.0.113.7:1")
			if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
				t.Fatal(err)
			}
			if refused := i == c.refuse; (w.Code == http.StatusTooManyRequests) != refused {
				t.Fatalf("%s: request %d has status %d", name, i, w.Code)
			}
		}
		found := logs.FilterMessage("rate limit exceeded").All()
		if len(found) != 1 || (found[0].ContextMap()["queue_full"] == true) != c.full {
			t.Errorf("%s: logged %v", name, found)
		}
	}
}
