package zone_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestUnknownStates: a look says which limit it is about if requests can set it. A reset warns if these limits have counters of their
// own, because it cannot find them.
func TestUnknownStates(t *testing.T) {
	for limit, want := range map[string]bool{
		`"max_events": 5, "window": "1h"`:                                                                                                                                              false,
		`"max_events": "{http.request.header.N} 5", "window": "1h"`:                                                                                                                    false,
		`"algorithm": "token_bucket", "max_events": 5, "window": "1h", "burst": "{http.request.header.N} 9"`:                                                                           false,
		`"algorithm": "token_bucket", "max_events": "{http.request.header.N} 1", "window": "1h"`:                                                                                       true,
		`"algorithm": "leaky_bucket", "max_events": "{http.request.header.N}", "window": "1h"`:                                                                                         true,
		`"algorithm": "fixed_window", "max_events": "{http.request.header.N} 5", "window": "day"`:                                                                                      false,
		`"algorithm": "concurrency", "max_events": "{http.request.header.N} 5"`:                                                                                                        false,
		`"plan": {"of": "{http.request.method}", "default": "reject 405", "plans": {"GET": {"algorithm": "token_bucket", "max_events": "{http.request.header.N} 5", "window": "1h"}}}`: true,
		`"plan": {"of": "{http.request.method}", "default": "reject 405", "plans": {"GET": {"max_events": "{http.request.header.N} 5", "window": "1h"}}}`:                              false,
	} {
		ctx := caddytest.Config(t)
		caddytest.LoadInto(t, ctx, `{"store": {"backend": "memory"}, "rate_limits": {"a": {"key": "{http.request.header.Client}", `+limit+`}}}`)
		caddytest.Run(t, ctx)
		if look := caddytest.Admin(t, http.MethodGet, "zones/a/key?key=client", ""); strings.Contains(look, `"assumed": "`) != strings.Contains(limit, "{http.request.header.N}") && !strings.Contains(limit, "plan") {
			t.Errorf("%s: a look says %s", limit, look)
		}
		answer := caddytest.Admin(t, http.MethodDelete, "zones/a/key?key=client", "")
		if warns := strings.Contains(answer, "may have several counters"); warns != want || strings.Contains(answer, "it had used nothing") == want {
			t.Errorf("%s: the response is %q, want a warning: %v", limit, answer, want)
		}
	}
}
