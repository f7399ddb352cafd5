package respond_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestHeaderFields: the fields of draft-11 describe the zone that binds the client most, and the
// policies of all zones. A standard parser reads them.
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
		{200, `"b \"quoted\"";r=2;t=30, "b%C3%BCrst";r=24;t=6`, ""},
		{200, `"b \"quoted\"";r=1;t=30, "b%C3%BCrst";r=23;t=6`, ""},
		{200, `"b \"quoted\"";r=0;t=30, "b%C3%BCrst";r=22;t=6`, ""},
		{429, `"b \"quoted\"";r=0;t=30, "b%C3%BCrst";r=22;t=6`, "30"},
	} {
		status, header := caddytest.Serve(t, h, "203.0.113.7:1000")
		if status != want.status || header.Get("RateLimit") != want.limit || header.Get("Retry-After") != want.retry ||
			header.Get("RateLimit-Policy") != policy {
			t.Fatalf("request %d: status %d, header %v, want %+v and the policies %s", i+1, status, header, want, policy)
		}
		for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
			if _, err := httpsfv.UnmarshalList(header.Values(name)); err != nil {
				t.Errorf("%s: %s: %v", name, header.Get(name), err)
			}
		}
	}
	if _, header := caddytest.Serve(t, h, "203.0.113.8:1000"); !strings.HasPrefix(header.Get("RateLimit"), `"b \"quoted\"";r=2;t=30, `) {
		t.Errorf("RateLimit of another client: %s, want r=2", header.Get("RateLimit"))
	}
}

// TestStyles: all styles together send the fields of each.
func TestStyles(t *testing.T) {
	h := caddytest.Load(t, `{
		"headers": ["x-ratelimit", "spring", "draft-11"],
		"header_name": {"x-ratelimit-limit": "X-Quota"},
		"rate_limits": {"styles": {"max_events": 90, "window": "1m", "algorithm": "token_bucket", "burst": 6, "cost": 3}}
	}`)
	for i, want := range []map[string]string{
		{
			"X-Quota": "6", "X-Ratelimit-Remaining": "3", "X-Ratelimit-Reset": "2", "X-Ratelimit-Replenish-Rate": "1.5",
			"X-Ratelimit-Burst-Capacity": "6", "X-Ratelimit-Requested-Tokens": "3",
			"Ratelimit": `"styles";r=3;t=1`, "Ratelimit-Policy": `"styles";q=6;w=4`,
		},
		nil,
		{
			"X-Quota": "6", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "4", "X-Ratelimit-Replenish-Rate": "1.5",
			"X-Ratelimit-Burst-Capacity": "6", "X-Ratelimit-Requested-Tokens": "3", "X-Ratelimit-Retry-After": "2",
			"Ratelimit": `"styles";r=0;t=1`, "Ratelimit-Policy": `"styles";q=6;w=4`, "Retry-After": "2",
		},
	} {
		_, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if want == nil {
			continue
		}
		for name, value := range want {
			if got := header[name]; len(got) != 1 || got[0] != value {
				t.Errorf("response %d: %s: %q, want %q", i+1, name, got, value)
			}
		}
		if len(header) != len(want) {
			t.Errorf("response %d: %v, want %d fields", i+1, header, len(want))
		}
	}
}

// TestHeadersOff: only Retry-After is left, because it belongs to HTTP.
func TestHeadersOff(t *testing.T) {
	h := caddytest.Load(t, `{"headers": ["off"], "status": 503, "rate_limits": {"off": {"max_events": 0, "window": "1m"}}}`)
	if status, header := caddytest.Serve(t, h, "203.0.113.7:1000"); status != 503 || len(header) != 1 || header.Get("Retry-After") != "60" {
		t.Errorf("got %d %v, want 503 and only Retry-After: 60", status, header)
	}
}

// TestConcurrencyHasNoReset: it is not known when slots come back.
func TestConcurrencyHasNoReset(t *testing.T) {
	h := caddytest.Load(t, `{"headers": ["x-ratelimit", "spring"], "rate_limits": {"slots": {"max_events": 4, "algorithm": "concurrency"}}}`)
	if _, header := caddytest.Serve(t, h, "203.0.113.7:1"); header.Get("X-RateLimit-Remaining") != "3" || header["X-Ratelimit-Reset"] != nil || header["X-Ratelimit-Replenish-Rate"] != nil {
		t.Errorf("header %v, want 3 remaining, and neither a reset nor a rate", header)
	}
}

// TestResponsesShareNothing: handlers behind may change header values in place, as Caddy's header
// directive does. The values of other requests stay as they are.
func TestResponsesShareNothing(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"shared": {"max_events": 9, "window": "1m"}}}`)
	for range 3 {
		_, header := caddytest.Serve(t, h, "203.0.113.7:1000")
		if got := header["Ratelimit-Policy"][0]; got != `"shared";q=9;w=60` {
			t.Fatalf("RateLimit-Policy: %q, which another request has changed", got)
		}
		header["Ratelimit-Policy"][0] = "changed"
	}
}

// TestWindowsOfOverrides: headers say in which time the quota of an override comes back.
func TestWindowsOfOverrides(t *testing.T) {
	for _, test := range []struct{ limit, override, want string }{
		{`"algorithm": "sliding_window_log", "max_events": 3, "window": "1m"`, `{"limit": "50/2m"}`, "q=50;w=120 0.417"},
		{`"algorithm": "sliding_window_counter", "max_events": 3, "window": "1m"`, `{"limit": "50/2m"}`, "q=50;w=120 0.417"},
		{`"algorithm": "fixed_window", "max_events": 3, "window": "1m"`, `{"limit": "50/2m"}`, "q=50;w=120 0.417"},
		{`"algorithm": "fixed_window", "max_events": 3, "window": "1m", "align": "first_request"`, `{"limit": 50}`, "q=50;w=60 0.833"},
		{`"algorithm": "fixed_window", "max_events": 3, "window": "day"`, `{"limit": 500}`, "q=500;w=86400 0.006"},
		{`"algorithm": "token_bucket", "max_events": 3, "window": "1m"`, `{"limit": 0}`, "q=0;w=60 0"},
		{`"algorithm": "token_bucket", "max_events": 3, "window": "1m"`, `{"limit": "10/1m burst 20"}`, "q=20;w=120 0.167"},
		{`"algorithm": "token_bucket", "max_events": 3, "window": "1m", "refill": "interval"`, `{"limit": "10/1m burst 25"}`, "q=25;w=180 0.167"},
		{`"algorithm": "leaky_bucket", "max_events": 3, "window": "1m"`, `{"limit": "10/1s"}`, "q=10;w=1 10"},
		{`"algorithm": "concurrency", "max_events": 3`, `{"limit": 10}`, `q=10;qu="concurrent-requests" `},
	} {
		ctx := caddytest.Config(t)
		h := caddytest.LoadInto(t, ctx, `{"headers": ["draft-11", "spring"], "rate_limits": {"of overrides": {`+test.limit+`, "overrides": true}}}`)
		caddytest.Run(t, ctx)
		caddytest.Admin(t, http.MethodPut, "zones/of%20overrides/key/override", test.override)
		if _, header := caddytest.Ask(t, h, "/"); header.Get("RateLimit-Policy")+" "+header.Get("X-RateLimit-Replenish-Rate") != `"of overrides";`+test.want {
			t.Errorf("%s, %s: %v, want %s", test.limit, test.override, header, test.want)
		}
		caddytest.CleanUp(t, h)
	}
}

// cached is a store that refuses the first check from a cache, so that it has not decided the others.
type cached struct{ store.Store }

func (cached) Take(_ context.Context, _ []store.Check, decisions []algorithms.Decision) error {
	clear(decisions)
	decisions[0].Quota, decisions[0].RetryAfter, decisions[0].NextAfter = 5, time.Hour, time.Hour
	for i := range decisions[1:] {
		decisions[1+i].Allowed = true
	}
	return nil
}

func (cached) Adjust(...store.Adjustment) {}
func (cached) Close() error               { return nil }

// TestUnknownIsNotZero: the header says nothing of a zone of which the store has said nothing.
func TestUnknownIsNotZero(t *testing.T) {
	s := caddytest.NewStore(t, func() (store.Store, error) { return cached{}, nil })
	for options, want := range map[string]string{"": `"a";r=0;t=3600`, `, "headers": "off"`: ""} {
		h := caddytest.Load(t, `{`+s.Option()+`"rate_limits": {
			"a": {"max_events": 5, "window": "1h", "algorithm": "token_bucket"`+options+`},
			"b": {"max_events": 100, "window": "1m", "algorithm": "token_bucket"}
		}}`)
		status, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if got := header.Get("RateLimit"); status != 429 || got != want {
			t.Errorf("a%s: status %d, RateLimit %s, want 429 and %s", options, status, got, want)
		}
	}
}
