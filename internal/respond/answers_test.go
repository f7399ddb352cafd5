package respond_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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

// post makes a request one with a body.
func post(r *http.Request, contentType, body string) {
	r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", contentType)
}

// TestLanguages: a caller is answered in the language that its request shows, if the handler speaks it.
func TestLanguages(t *testing.T) {
	const (
		all     = `"answers": ["grpc", "json-rpc", "problem", "html"], `
		problem = "application/problem+json"
		html    = "text/html; charset=utf-8"
	)
	for _, c := range []struct {
		options, method, contentType, accept string
		status                               int
		want                                 string // the content type
		vary                                 string
	}{
		{all, "GET", "", "*/*", 429, "", "Accept"},
		{all, "GET", "", "", 429, "", "Accept"},
		{all, "GET", "", "application/*", 429, "", "Accept"},
		{all, "GET", "", "application/json", 429, problem, "Accept"},
		{all, "GET", "", "APPLICATION/JSON ; q=0.5 , */*", 429, problem, "Accept"},
		{all, "GET", "", "application/json;q=0", 429, "", "Accept"},
		{all, "GET", "", "application/json;q=2", 429, "", "Accept"},
		{all, "GET", "", "application/json;q=NaN", 429, "", "Accept"},
		{all, "GET", "", "application/problem+json, text/html;q=0.9", 429, problem, "Accept"},
		{all, "GET", "", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", 429, html, "Accept"},
		{all, "GET", "", "application/json;q=0.9, text/html", 429, html, "Accept"},
		{all, "GET", "", "application/json, text/html", 429, problem, "Accept"},
		{`"answers": ["html", "problem"], `, "GET", "", "application/json, text/html", 429, html, "Accept"},
		{all, "HEAD", "", "text/html", 429, html, "Accept"},
		{`"answers": ["problem"], `, "GET", "", "text/html, application/json;q=0.9", 429, "", "Accept"},
		{`"answers": ["problem"], "on_limit": "problem", `, "GET", "", "text/html", 429, problem, "Accept"},
		{`"answers": ["html"], "on_limit": "problem", `, "GET", "", "text/html", 429, html, "Accept"},
		{all, "POST", "application/grpc", "", 200, "application/grpc", ""},
		{all, "POST", "Application/gRPC+proto; x=y", "", 200, "application/grpc+proto", ""},
		{all, "POST", "application/grpc-web", "", 200, "application/grpc-web", ""},
		{all, "POST", "application/grpc-web-text+proto", "application/json", 200, "application/grpc-web-text+proto", ""},
		{all, "POST", "application/grpcx", "", 429, "", "Accept"},
		{all, "POST", "application/grpc+\r\nx", "", 429, "", "Accept"},
		{"", "POST", "application/grpc", "", 200, "application/grpc", ""},
		{"", "POST", "application/json", "text/html, application/json", 429, "", ""},
		{`"answers": ["off"], `, "POST", "application/grpc", "", 429, "", ""},
		{`"answers": ["off"], "on_limit": "problem", `, "POST", "application/grpc", "", 429, problem, ""},
		{all, "POST", "application/json", "application/json, text/event-stream", 429, "application/json", ""},
		{all, "POST", "application/json-rpc", "", 429, "application/json", ""},
		{all, "GET", "application/json", "application/json, text/event-stream", 429, problem, "Accept"},
		{all, "POST", "application/json", "application/json, text/event-stream;q=0", 429, problem, "Accept"},
	} {
		h := caddytest.Load(t, `{`+c.options+`"rate_limits": {"z": {"max_events": 0, "window": "1h"}}}`)
		w, err := refused(t, h, func(r *http.Request) {
			post(r, c.contentType, "{}")
			r.Method = c.method
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got := w.Header()
		if w.Code != c.status || got.Get("Content-Type") != c.want || got.Get("Vary") != c.vary || got.Get("Retry-After") != "3600" {
			t.Errorf("%s%s %q, Accept %q: status %d, %v", c.options, c.method, c.contentType, c.accept, w.Code, got)
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD has a body: %s", w.Body)
		}
	}
}

// TestVaryIsAdded: what says already on which fields an answer depends stays.
func TestVaryIsAdded(t *testing.T) {
	h := caddytest.Load(t, `{"answers": ["html"], "rate_limits": {"z": {"max_events": 0, "window": "1h"}}}`)
	for before, want := range map[string][]string{
		"Accept-Encoding": {"Accept-Encoding", "Accept"}, "Origin, accept": {"Origin, accept"}, "*": {"*"},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("Vary", before)
		if err := h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if got := w.Header().Values("Vary"); !slices.Equal(got, want) {
			t.Errorf("Vary is %q, want %q", got, want)
		}
	}
}

// TestLanguagesAndErrorRoutes: error routes answer as before if nobody has chosen a language. With the option they
// answer those whose language it does not name.
func TestLanguagesAndErrorRoutes(t *testing.T) {
	for _, c := range []struct {
		options, contentType, accept string
		routes                       bool
	}{
		{"", "application/grpc", "", true},
		{`"answers": ["grpc"], `, "application/grpc", "", false},
		{`"answers": ["grpc", "problem"], `, "", "text/html", true},
		{`"answers": ["grpc", "problem"], `, "", "application/json", false},
		{`"on_limit": "problem", `, "application/grpc", "", false},
	} {
		h := caddytest.Load(t, `{`+c.options+`"rate_limits": {"z": {"max_events": 0, "window": "1h"}}}`)
		_, err := refused(t, h, func(r *http.Request) {
			post(r, c.contentType, "")
			r.Header.Set("Accept", c.accept)
			server := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
			server.Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
		})
		if (err != nil) != c.routes {
			t.Errorf("%s%q, Accept %q: %v", c.options, c.contentType, c.accept, err)
		}
	}
}

// TestWrongAnswers: the option names languages, each once.
func TestWrongAnswers(t *testing.T) {
	for options, want := range map[string]string{
		`["soap"]`:        `answers must be grpc, json-rpc, problem, html or off, got "soap"`,
		`["off", "html"]`: "answers off excludes languages, got off html",
		`["html","html"]`: "answers names html twice",
	} {
		_, err := caddytest.TryLoad(caddytest.Config(t), `{"answers": `+options+`}`)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", options, err, want)
		}
	}
}

// TestJSONRPC: an error of JSON-RPC has the id of the request if a zone has read the body, and then status 200. In all
// other cases the status tells what happened.
func TestJSONRPC(t *testing.T) {
	const read = `, "cost_request": {"json": ["tokens"], "missing": 1, "unreadable": 1}`
	for _, c := range []struct {
		name, zone, body string
		status           int
		id               string
	}{
		{"a number", read, `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, 200, "7"},
		{"a text", read, `{"jsonrpc":"2.0","id":"a\u0062","method":"x"}`, 200, `"a\u0062"`},
		{"a notification", read, `{"jsonrpc":"2.0","method":"x"}`, 429, "null"},
		{"the last of two", read, `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, 200, "2"},
		{"another case", read, `{"jsonrpc":"2.0","ID":1,"method":"x"}`, 429, "null"},
		{"an object", read, `{"jsonrpc":"2.0","id":{"a":1},"method":"x"}`, 429, "null"},
		{"a long text", read, `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"x"}`, 429, "null"},
		{"not JSON", read, `{"jsonrpc":"2.0","id":1`, 429, "null"},
		{"not read", "", `{"jsonrpc":"2.0","id":7,"method":"x"}`, 429, "null"},
		{"blocked", read + `, "block": [{}]`, `{"jsonrpc":"2.0","id":7,"method":"x"}`, 403, "null"},
	} {
		h := caddytest.Load(t, `{"answers": ["json-rpc"], "rate_limits": {"z": {"max_events": 0, "window": "1m"`+c.zone+`}}}`)
		w, err := refused(t, h, func(r *http.Request) {
			post(r, "application/json", c.body)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   struct {
				Code    int
				Message string
				Data    struct {
					Type string
					Wait int64 `json:"retry_after"`
				}
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, w.Body)
		}
		if w.Code != c.status || string(got.ID) != c.id || got.JSONRPC != "2.0" {
			t.Errorf("%s: status %d, %s, want %d, %s", c.name, w.Code, w.Body, c.status, c.id)
		}
		if c.status != 403 && (got.Error.Code != -32029 || got.Error.Data.Wait != 60 || !strings.Contains(got.Error.Message, "Wait 60 seconds")) {
			t.Errorf("%s: %s", c.name, w.Body)
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
		{"no plan", "", `"plan": {"of": "{http.vars.plan}", "reject": 402, "plans": {"free": {"max_events": 1, "window": "1h"}}}`, "3", "-1"},
	} {
		h := caddytest.Load(t, `{`+c.options+`"rate_limits": {"z": {`+c.zone+`}}}`)
		for _, contentType := range []string{"application/grpc", "application/grpc-web+proto", "application/grpc-web-text"} {
			w, err := refused(t, h, func(r *http.Request) { post(r, contentType, "") })
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"grpc-status": w.Header().Get("Grpc-Status"), "grpc-retry-pushback-ms": w.Header().Get("Grpc-Retry-Pushback-Ms")}
			if contentType != "application/grpc" {
				if len(w.Header()["Grpc-Status"]) > 0 {
					t.Errorf("%s: the status is in the header and in the body", c.name)
				}
				got = grpcWebTrailers(t, w.Body.Bytes(), strings.Contains(contentType, "text"))
			} else if w.Body.Len() > 0 {
				t.Errorf("%s: there is a body: %q", c.name, w.Body)
			}
			if w.Code != 200 || got["grpc-status"] != c.code || got["grpc-retry-pushback-ms"] != c.pushback {
				t.Errorf("%s, %s: status %d, %v", c.name, contentType, w.Code, got)
			}
		}
	}
}

// grpcWebTrailers returns the trailers of a body that has nothing else.
func grpcWebTrailers(t *testing.T, body []byte, text bool) map[string]string {
	t.Helper()
	if text {
		var err error
		if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
			t.Fatal(err)
		}
	}
	if len(body) < 5 || body[0] != 0x80 || int(body[1])<<24|int(body[2])<<16|int(body[3])<<8|int(body[4]) != len(body)-5 {
		t.Fatalf("not one frame of trailers: %q", body)
	}
	all := make(map[string]string)
	for line := range strings.SplitSeq(strings.TrimSuffix(string(body[5:]), "\r\n"), "\r\n") {
		name, value, _ := strings.Cut(line, ": ")
		all[name] = value
	}
	return all
}
