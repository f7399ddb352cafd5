package respond_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestStyles: every style says what it is made to say, alone and beside the others.
func TestStyles(t *testing.T) {
	h := caddytest.Load(t, `{
		"headers": ["x-ratelimit", "spring", "draft-10"],
		"header_names": {"x-ratelimit-limit": "X-Quota"},
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
				t.Errorf("answer %d: %s: %q, want %q", i+1, name, got, value)
			}
		}
		if len(header) != len(want) {
			t.Errorf("answer %d: %v, want %d fields", i+1, header, len(want))
		}
	}
}

// TestConcurrencyTellsNoReset: nobody knows when slots come back.
func TestConcurrencyTellsNoReset(t *testing.T) {
	h := caddytest.Load(t, `{"headers": ["x-ratelimit", "spring"], "rate_limits": {"slots": {"max_events": 4, "algorithm": "concurrency"}}}`)
	_, header := caddytest.Serve(t, h, "203.0.113.7:1")
	if header.Get("X-RateLimit-Remaining") != "3" || header["X-Ratelimit-Reset"] != nil || header["X-Ratelimit-Replenish-Rate"] != nil {
		t.Errorf("got %v", header)
	}
}

// TestTwoHandlers: their zones are told of as if they stood in one.
func TestTwoHandlers(t *testing.T) {
	ctx := caddytest.Config(t)
	shared := `"shared": {"max_events": 50, "window": "1m"}`
	site := caddytest.LoadInto(t, ctx, `{"headers": ["draft-10", "x-ratelimit"], "rate_limits": {"site": {"max_events": 4, "window": "1m"}, `+shared+`}}`)
	route := caddytest.LoadInto(t, ctx, `{"rate_limits": {"route": {"max_events": 3, "window": "1m"}, `+shared+`}}`)
	const policies = `"shared";q=50;w=60, "site";q=4;w=60, "route";q=3;w=60`
	for i, want := range []struct{ limit, remaining string }{
		{`"route";r=2;t=60`, "2"}, {`"route";r=1;t=60`, "1"}, {`"route";r=0;t=60`, "0"}, {`"route";r=0;t=60`, "0"},
	} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := caddytest.ServeTwo(site, route, w, r); err != nil {
			t.Fatal(err)
		}
		if (w.Code == http.StatusTooManyRequests) != (i == 3) {
			t.Errorf("request %d: status %d", i+1, w.Code)
		}
		for name, value := range map[string]string{"RateLimit": want.limit, "RateLimit-Policy": policies, "X-RateLimit-Remaining": want.remaining} {
			if got := w.Header().Values(name); !slices.Equal(got, []string{value}) {
				t.Errorf("request %d: %s: %q, want %q", i+1, name, got, value)
			}
		}
		if got := caddytest.Replaced(r, "{http.rate_limit.zone} {http.rate_limit.remaining}"); got != "route "+want.remaining {
			t.Errorf("request %d: placeholders say %q", i+1, got)
		}
	}
	// The first one binds now.
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	if err := caddytest.ServeTwo(site, route, w, r); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusTooManyRequests || !strings.HasPrefix(w.Header().Get("RateLimit"), `"site";r=0`) || w.Header().Get("X-RateLimit-Retry-After") != w.Header().Get("Retry-After") {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
}

// TestProblem is the body that the draft of the header fields asks for.
func TestProblem(t *testing.T) {
	h := caddytest.Load(t, `{"on_limit": "problem", "rate_limits": {
		"a": {"max_events": 0, "window": "1m"}, "bürst": {"max_events": 0, "window": "1h"}, "open": {"max_events": 9, "window": "1m"}}}`)
	for _, method := range []string{"GET", "HEAD"} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Method = method
		server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}} // which do not run
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if w.Code != 429 || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Retry-After") != "60" {
			t.Errorf("%s: status %d, %v", method, w.Code, w.Header())
		}
		if method == "HEAD" {
			if w.Body.Len() > 0 {
				t.Errorf("HEAD has a body: %s", w.Body)
			}
			continue
		}
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(body)
		const want = `{"status":429,"title":"Request cannot be satisfied as assigned quota has been exceeded",` +
			`"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["a","b%C3%BCrst"]}`
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestRefusalIsAnErrorWhereOneIsHandled: by the server, or by a subroute around.
func TestRefusalIsAnErrorWhereOneIsHandled(t *testing.T) {
	const limiter = `{"handler": "rate_limit", "rate_limits": {"caught": {"max_events": 0, "window": "1h"}}}`
	ctx := caddytest.Config(t)
	for _, c := range []struct {
		name, json string
		status     int
	}{
		{"no subroute", `{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}]}`, 429},
		{"subroute with errors", `{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}],
			"errors": {"routes": [{"handle": [{"handler": "static_response", "status_code": 418, "body": "{http.rate_limit.exceeded.name}"}]}]}}`, 418},
		{"subroute with errors further out", `{"handler": "subroute", "routes": [{"handle": [{"handler": "subroute", "routes": [{"handle": [` + limiter + `]}]}]}],
			"errors": {"routes": [{"handle": [{"handler": "static_response", "status_code": 418, "body": "{http.rate_limit.exceeded.name}"}]}]}}`, 418},
	} {
		module, err := ctx.LoadModuleByID("http.handlers.subroute", []byte(strings.Replace(c.json, `"handler": "subroute", `, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		if err := module.(*caddyhttp.Subroute).ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddytest.Passing); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if w.Code != c.status || c.status == 418 && w.Body.String() != "caught" {
			t.Errorf("%s: status %d, body %q, want %d", c.name, w.Code, w.Body, c.status)
		}
	}
}

// TestPlaceholders are those of a request that met a zone; a request that met none has
// none.
func TestPlaceholders(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"shown": {"max_events": 2, "window": "1h", "cost": 2}}}`)
	text := "{http.rate_limit.allowed} {http.rate_limit.zone} {http.rate_limit.limit} {http.rate_limit.remaining} " +
		"{http.rate_limit.reset} {http.rate_limit.retry_after} {http.rate_limit.cost} <{http.rate_limit.plan}>"
	for _, want := range []struct{ all, exceeded string }{
		{"true shown 2 0 3600 0 2 <>", "?"},
		{"false shown 2 0 3600 3600 2 <>", "shown"},
	} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if got := caddytest.Replaced(r, text); got != want.all {
			t.Errorf("got %q, want %q", got, want.all)
		}
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if got := repl.ReplaceAll("{http.rate_limit.exceeded.name}", "?"); got != want.exceeded {
			t.Errorf("exceeded.name: %q, want %q", got, want.exceeded)
		}
		if value, known := repl.Get("http.rate_limit.other"); known {
			t.Errorf("what does not exist is %v", value)
		}
	}
}
