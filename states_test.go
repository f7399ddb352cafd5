package caddyratelimit

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestStatesOfAZone: a reset finds the states of all plans, each family once, and of limits
// that requests have brought. Overrides go by the algorithm.
func TestStatesOfAZone(t *testing.T) {
	h := provision(t, config(t), `{"store": {"backend": "memory"}, "rate_limits": {"states": {
		"key": "{http.request.header.Client}",
		"plan": {"of": "{http.request.method}", "reject": 405, "plans": {
			"GET": {"max_events": 5, "window": "1h"},
			"POST": {"max_events": 9, "window": "1h"},
			"PUT": {"algorithm": "token_bucket", "max_events": 10, "window": "1s"},
			"DELETE": {"max_events": 9, "window": "{http.request.header.Window} 2h"}
		}}
	}}}`)
	for _, window := range []string{"3h", "4h", "3h"} {
		w := httptest.NewRecorder()
		r := request(w, "203.0.113.7:1")
		r.Method = "DELETE"
		r.Header.Set("Window", window)
		if err := h.ServeHTTP(w, r, passing); err != nil {
			t.Fatal(err)
		}
	}
	names := func(rules []*store.Rule) (names []string) {
		for _, rule := range rules {
			names = append(names, rule.ID())
		}
		slices.Sort(names)
		return names
	}
	const log = "states:sliding_window_log.2:"
	if got, want := names(h.zones[0].States()), []string{log + "1h", log + "2h", log + "3h", log + "4h", "states:token_bucket.2:1per100ms"}; !slices.Equal(got, want) {
		t.Errorf("states: got %q, want %q", got, want)
	}
	if got := names(h.zones[0].Rules()); len(got) != 2 {
		t.Errorf("rules: got %q, want one for each algorithm", got)
	}
}

// TestResetsThatMayLeaveSomething: a reset warns where requests can bring limits that count
// apart, and nowhere else.
func TestResetsThatMayLeaveSomething(t *testing.T) {
	for limit, want := range map[string]bool{
		`"max_events": 5, "window": "1h"`:                                                                                                       false,
		`"max_events": "{http.request.header.N} 5", "window": "1h"`:                                                                             false,
		`"max_events": 5, "window": "{http.request.header.W} 1h"`:                                                                               true,
		`"max_events": 5, "window": "{http.request.header.W}"`:                                                                                  true,
		`"algorithm": "token_bucket", "max_events": 5, "window": "1h", "burst": "{http.request.header.N} 9"`:                                    false,
		`"algorithm": "token_bucket", "max_events": "{http.request.header.N} 1", "window": "1h"`:                                                true,
		`"algorithm": "token_bucket", "max_events": "{http.request.header.N} 1", "window": "{http.request.header.W} 1h"`:                        true,
		`"algorithm": "leaky_bucket", "max_events": "{http.request.header.N}", "window": "1h"`:                                                  true,
		`"algorithm": "fixed_window", "max_events": "{http.request.header.N} 5", "window": "day"`:                                               false,
		`"algorithm": "fixed_window", "max_events": 5, "window": "{http.request.header.W} day"`:                                                 true,
		`"algorithm": "fixed_window", "max_events": 5, "window": "day", "timezone": "{http.request.header.T} UTC"`:                              true,
		`"algorithm": "concurrency", "max_events": "{http.request.header.N} 5"`:                                                                 false,
		`"plan": {"of": "{http.request.method}", "reject": 405, "plans": {"GET": {"max_events": 5, "window": "{http.request.header.W} 1h"}}}`:   true,
		`"plan": {"of": "{http.request.method}", "reject": 405, "plans": {"GET": {"max_events": "{http.request.header.N} 5", "window": "1h"}}}`: false,
	} {
		h := provision(t, config(t), `{"store": {"backend": "memory"}, "rate_limits": {"a": {"key": "{http.request.header.Client}", `+limit+`}}}`)
		if got := h.zones[0].HasUnknownStates(); got != want {
			t.Errorf("%s: got %v, want %v", limit, got, want)
		}
		if err := h.Cleanup(); err != nil {
			t.Fatal(err)
		}
	}
}
