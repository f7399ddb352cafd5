package respond_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dunglas/httpsfv"
)

func TestHeaderFields(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"b \"quoted\"": {"key": "{http.request.remote.host}", "max_events": 3, "window": "90s", "algorithm": "token_bucket"},
		"bürst": {"max_events": 10, "window": "1m", "algorithm": "token_bucket", "burst": 25}
	}}`)
	const policy = `"b \"quoted\"";q=3;w=90, "b%C3%BCrst";q=25;w=150`
	for i, want := range []struct {
		status int
		limit  string
		retry  string
	}{
		{200, `"b \"quoted\"";r=2;t=30`, ""},
		{200, `"b \"quoted\"";r=1;t=30`, ""},
		{200, `"b \"quoted\"";r=0;t=30`, ""},
		{429, `"b \"quoted\"";r=0;t=30`, "30"},
	} {
		status, header := caddytest.Serve(t, h, "203.0.113.7:1000")
		if status != want.status || header.Get("RateLimit") != want.limit || header.Get("Retry-After") != want.retry ||
			header.Get("RateLimit-Policy") != policy {
			t.Fatalf("request %d: got %d %v", i+1, status, header)
		}
		for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
			if _, err := httpsfv.UnmarshalList(header.Values(name)); err != nil {
				t.Errorf("%s: %s: %v", name, header.Get(name), err)
			}
		}
	}
	if _, header := caddytest.Serve(t, h, "203.0.113.8:1000"); header.Get("RateLimit") != `"b \"quoted\"";r=2;t=30` {
		t.Errorf("another client: %v", header)
	}
}

func TestHeadersOff(t *testing.T) {
	h := caddytest.Load(t, `{"headers": ["off"], "status": 503, "rate_limits": {"off": {"max_events": 0, "window": "1m"}}}`)
	status, header := caddytest.Serve(t, h, "203.0.113.7:1000")
	if status != 503 || len(header) != 1 || header.Get("Retry-After") != "60" {
		t.Errorf("got %d %v, want 503 and just Retry-After: 60", status, header)
	}
}

// TestRefusalNamesTheZone: error routes see which zone it was.
func TestRefusalNamesTheZone(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"refusing": {"max_events": 0, "window": "1h"}, "caddytest.Passing": {"max_events": 9, "window": "1h"}}}`)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
	err := h.ServeHTTP(w, r, caddytest.Passing)
	if err == nil || !strings.Contains(err.Error(), `"refusing"`) {
		t.Errorf("got %v", err)
	}
	if got := caddytest.Replaced(r, "{http.rate_limit.exceeded.name}"); got != "refusing" {
		t.Errorf("placeholder: %q", got)
	}
	if w.Header().Get("Retry-After") != "3600" || !strings.HasPrefix(w.Header().Get("RateLimit"), `"refusing";r=0`) {
		t.Errorf("the answer describes another zone: %v", w.Header())
	}
}

// TestAnswersShareNothing: handlers behind may change values where they stand, as Caddy's
// header directive does.
func TestAnswersShareNothing(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"shared": {"max_events": 9, "window": "1m"}}}`)
	for range 3 {
		_, header := caddytest.Serve(t, h, "203.0.113.7:1000")
		if got := header["Ratelimit-Policy"][0]; got != `"shared";q=9;w=60` {
			t.Fatalf("got %q, which another request has changed", got)
		}
		header["Ratelimit-Policy"][0] = "changed"
	}
}
