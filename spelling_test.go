package caddyratelimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestRawValues: a zone can have the client's bytes as its key.
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

// TestPlansByPathAndHost: no spelling of a path or a host gets past its plan to the default, and
// the names of plans can have any spelling, too.
func TestPlansByPathAndHost(t *testing.T) {
	for _, c := range []struct{ of, name string }{
		{"{http.request.uri.path}", "/login"},
		{"{http.request.uri.path}", "/Login"},
		{"{http.request.host}", "a.test"},
		{"{http.request.host}", "A.test"},
		{"{http.request.method} {http.request.uri.path}", "GET /login"},
		{"{http.request.method} {http.request.host}{http.request.uri.path}", "GET A.test/Login"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"planned": {"plan": {
			"of": "`+c.of+`", "plans": {"`+c.name+`": {"max_events": 0, "window": "1h"}, "free": {"unlimited": true}}, "default": "free"
		}}}}`)
		for _, target := range []string{"/login", "/LOGIN", "//login", "/%6cogin"} {
			for _, host := range []string{"a.test", "A.TEST", "a.test."} {
				if status := caddytest.Status(h, caddytest.RequestTo(host, target)); status != http.StatusTooManyRequests {
					t.Errorf("plan %s, %q: %s%s: got %d, want 429", c.of, c.name, host, target, status)
				}
			}
		}
		caddytest.CleanUp(t, h)
	}
	_, err := caddytest.Config(t).LoadModuleByID("http.handlers.rate_limit", []byte(`{"rate_limits": {"planned": {"plan": {
		"of": "{http.request.uri.path}", "plans": {"/Login": {"unlimited": true}, "/login": {"unlimited": true}}, "default": "/login"}}}}`))
	if err == nil || !strings.Contains(err.Error(), `plan "/login"`) {
		t.Errorf("plans that cannot be told apart: error %v", err)
	}
}
