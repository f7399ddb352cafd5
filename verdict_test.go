package caddyratelimit

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

func TestBindingZone(t *testing.T) {
	pass := func(remaining, quota int64) algorithms.Decision {
		return algorithms.Decision{Allowed: true, Remaining: remaining, Quota: quota}
	}
	refuse := func(wait time.Duration) algorithms.Decision {
		return algorithms.Decision{RetryAfter: wait, Quota: 10}
	}
	for _, c := range []struct {
		name      string
		decisions []algorithms.Decision
		index     int
		refused   bool
	}{
		{"the smallest share left", []algorithms.Decision{pass(90, 100), pass(1, 2), pass(50, 1000)}, 2, false},
		{"the first of equals", []algorithms.Decision{pass(1, 2), pass(50, 100)}, 0, false},
		{"the one that refuses", []algorithms.Decision{pass(0, 100), refuse(time.Second), pass(0, 1)}, 1, true},
		{"the longest wait", []algorithms.Decision{refuse(time.Second), refuse(time.Minute), pass(0, 1)}, 1, true},
		{"never is longest", []algorithms.Decision{refuse(algorithms.Never), refuse(time.Minute)}, 0, true},
		{"no quota at all", []algorithms.Decision{pass(1, 2), pass(0, 0)}, 1, false},
	} {
		a := &attempt{decisions: c.decisions, firm: len(c.decisions)}
		if index, refused := a.binding(0, a.firm); index != c.index || refused != c.refused {
			t.Errorf("%s: got %d, %v", c.name, index, refused)
		}
	}
}

func TestHeaderFields(t *testing.T) {
	h := provision(t, config(t), `{"rate_limits": {
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
		status, header := serve(t, h, "203.0.113.7:1000")
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
	if _, header := serve(t, h, "203.0.113.8:1000"); header.Get("RateLimit") != `"b \"quoted\"";r=2;t=30` {
		t.Errorf("another client: %v", header)
	}
}

func TestHeadersOff(t *testing.T) {
	h := provision(t, config(t), `{"headers": ["off"], "status": 503, "rate_limits": {"off": {"max_events": 0, "window": "1m"}}}`)
	status, header := serve(t, h, "203.0.113.7:1000")
	if status != 503 || len(header) != 1 || header.Get("Retry-After") != "60" {
		t.Errorf("got %d %v, want 503 and just Retry-After: 60", status, header)
	}
}

// TestRetryAfter: whole seconds, rounded up, at least one, and jitter adds to them.
func TestRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]int64{
		time.Microsecond: 1, time.Second: 1, time.Second + 1: 2, 59*time.Second + 1: 60,
	} {
		if got := new(answer).retryAfter(new(zone.QuotaPolicy), &algorithms.Decision{RetryAfter: wait}); got != want {
			t.Errorf("%v: got %d, want %d", wait, got, want)
		}
	}
	jittery := answer{jitter: 0.5}
	seen := make(map[int64]bool)
	for range 1000 {
		got := jittery.retryAfter(new(zone.QuotaPolicy), &algorithms.Decision{RetryAfter: 10 * time.Second})
		if got < 10 || got > 15 {
			t.Fatalf("10s with jitter 0.5: got %d", got)
		}
		seen[got] = true
	}
	if len(seen) < 4 {
		t.Errorf("jitter gave just %v", seen)
	}
}

// TestRefusalNamesTheZone: error routes see which zone it was.
func TestRefusalNamesTheZone(t *testing.T) {
	h := provision(t, config(t), `{"rate_limits": {"refusing": {"max_events": 0, "window": "1h"}, "passing": {"max_events": 9, "window": "1h"}}}`)
	w := httptest.NewRecorder()
	r := request(w, "203.0.113.7:1")
	server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
	err := h.ServeHTTP(w, r, passing)
	if err == nil || !strings.Contains(err.Error(), `"refusing"`) {
		t.Errorf("got %v", err)
	}
	if got := replaced(r, "{http.rate_limit.exceeded.name}"); got != "refusing" {
		t.Errorf("placeholder: %q", got)
	}
	if w.Header().Get("Retry-After") != "3600" || !strings.HasPrefix(w.Header().Get("RateLimit"), `"refusing";r=0`) {
		t.Errorf("the answer describes another zone: %v", w.Header())
	}
}

// TestAnswersShareNothing: handlers behind may change values where they stand, as Caddy's
// header directive does.
func TestAnswersShareNothing(t *testing.T) {
	h := provision(t, config(t), `{"rate_limits": {"shared": {"max_events": 9, "window": "1m"}}}`)
	for range 3 {
		_, header := serve(t, h, "203.0.113.7:1000")
		if got := header["Ratelimit-Policy"][0]; got != `"shared";q=9;w=60` {
			t.Fatalf("got %q, which another request has changed", got)
		}
		header["Ratelimit-Policy"][0] = "changed"
	}
}
