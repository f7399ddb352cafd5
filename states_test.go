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
	if got, want := names(h.zones[0].states()), []string{log + "1h", log + "2h", log + "3h", log + "4h", "states:token_bucket.2:1per100ms"}; !slices.Equal(got, want) {
		t.Errorf("states: got %q, want %q", got, want)
	}
	if got := names(h.zones[0].rules()); len(got) != 2 {
		t.Errorf("rules: got %q, want one for each algorithm", got)
	}
}
