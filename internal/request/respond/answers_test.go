package respond_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// refused returns the answer of a handler to a request that it refuses, and the error for error routes.
func refused(t *testing.T, h caddyhttp.MiddlewareHandler, change func(*http.Request)) (*httptest.ResponseRecorder, error) {
	t.Helper()
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	change(r)
	return w, h.ServeHTTP(w, r, caddytest.Passing)
}

// errorRoutes gives the server of a request error routes.
func errorRoutes(r *http.Request) {
	server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
}

// post makes a request one with a body.
func post(r *http.Request, contentType, body string) {
	r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", contentType)
}

// TestLanguages: a caller of gRPC gets a status of gRPC, and all others what on_limit says, whatever they accept. Error
// routes answer clients that would get neither a status of gRPC, which is all that its callers can read, nor a problem.
func TestLanguages(t *testing.T) {
	const onLimit, problem = `"on_limit": "problem", `, "application/problem+json"
	for _, c := range []struct {
		options, method, contentType string
		status                       int
		want                         string // the content type
	}{
		{"", "GET", "", 429, ""},
		{"", "POST", "application/json", 429, ""},
		{onLimit, "GET", "", 429, problem},
		{onLimit, "HEAD", "", 429, problem},
		{onLimit, "POST", "application/json", 429, problem},
		{"", "POST", "application/grpc", 200, "application/grpc"},
		{onLimit, "POST", "Application/gRPC+proto; x=y", 200, "application/grpc"},
		{"", "POST", "application/grpc-web+proto", 429, ""},
		{onLimit, "POST", "application/grpcx", 429, problem},
	} {
		h := caddytest.Load(t, `{`+c.options+`"rate_limits": {"z": {"max_events": 0, "window": "1h"}}}`)
		for _, accept := range []string{"", "*/*", "application/json", "text/html,*/*;q=0.8", "application/json, text/event-stream"} {
			w, err := refused(t, h, func(r *http.Request) {
				post(r, c.contentType, "{}")
				r.Method = c.method
				r.Header.Set("Accept", accept)
			})
			if err != nil {
				t.Fatal(err)
			}
			got := w.Header()
			if w.Code != c.status || got.Get("Content-Type") != c.want || got.Get("Vary") != "" || got.Get("Retry-After") != "3600" {
				t.Errorf("%s%s %q, Accept %q: status %d, %v", c.options, c.method, c.contentType, accept, w.Code, got)
			}
			if c.method == "HEAD" && w.Body.Len() > 0 {
				t.Errorf("HEAD has a body: %s", w.Body)
			}
		}
		_, err := refused(t, h, func(r *http.Request) {
			post(r, c.contentType, "{}")
			errorRoutes(r)
		})
		if (err != nil) != (c.want == "") {
			t.Errorf("%s%q: error routes get %v", c.options, c.contentType, err)
		}
	}
}

// TestGRPCCodes: the code of gRPC tells who is the reason, and the pushback whether the client's library may try again.
func TestGRPCCodes(t *testing.T) {
	down := caddytest.Failing(t, caddytest.ErrNoAnswer).Option()
	for _, c := range []struct {
		name, options, zone string
		code, pushback      string
	}{
		{"used up", "", `"max_events": 0, "window": "12s"`, "8", "12000"},
		{"a long wait", "", `"max_events": 0, "window": "61s"`, "8", "-1"},
		{"never", "", `"max_events": 1, "window": "12s", "cost": 2`, "8", "-1"},
		{"no store", down + `"on_store_error": "deny", `, `"max_events": 1, "window": "12s"`, "14", "1000"},
		{"blocked", "", `"max_events": 1, "window": "12s", "block": [{}]`, "7", "-1"},
		{"no key", "", `"max_events": 1, "window": "12s", "key": "{http.request.header.Key}", "missing_key": "reject"`, "16", "-1"},
		{"no plan", "", `"plan": {"of": "{http.vars.plan}", "default": "reject 402", "plans": {"free": {"max_events": 1, "window": "1h"}}}`, "3", "-1"},
	} {
		h := caddytest.Load(t, `{`+c.options+`"rate_limits": {"z": {`+c.zone+`}}}`)
		w, err := refused(t, h, func(r *http.Request) { post(r, "application/grpc", "") })
		if err != nil {
			t.Fatal(err)
		}
		got := w.Header()
		if w.Body.Len() > 0 {
			t.Errorf("%s: there is a body: %q", c.name, w.Body)
		}
		if w.Code != 200 || got.Get("Grpc-Status") != c.code || got.Get("Grpc-Retry-Pushback-Ms") != c.pushback || got.Get("Grpc-Message") == "" {
			t.Errorf("%s: status %d, %v", c.name, w.Code, got)
		}
	}
}
