package routes

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// TestObserves: what may look at the placeholders of a handler, or may answer with its fields, is known from the
// options of the others, whether they are loaded or still JSON. Where they do not say it, everything may be.
func TestObserves(t *testing.T) {
	const limiter = `{"handler": "rate_limit", "rate_limits": {"z": {"max_events": 1, "window": "1m"}}}`
	for _, c := range []struct {
		name, handlers, matcher string
		observes, answers, raw  bool
	}{
		{name: "text", handlers: `{"handler": "static_response", "body": "ok", "headers": {"Vary": ["Origin"]}}`},
		{name: "file", handlers: `{"handler": "encode", "encodings": {"gzip": {}}}, {"handler": "file_server", "root": "/srv"}`},
		{name: "changes", handlers: `{"handler": "rewrite", "uri": "/a"}, {"handler": "vars", "a": "b"}, {"handler": "headers", "response": {"set": {"A": ["b"]}}}`},
		{name: "matcher", matcher: `{"header": {"A": ["b"]}, "not": [{"path": ["/a"]}]}`},
		{name: "subroute", handlers: `{"handler": "subroute", "routes": [{"handle": [{"handler": "static_response"}]}]}`},

		{name: "placeholder", handlers: `{"handler": "static_response", "body": "{http.rate_limit.remaining}"}`, observes: true},
		{name: "variable", handlers: `{"handler": "headers", "response": {"set": {"A": ["{http.vars.rate_limit}"]}}}`, observes: true},
		{name: "in a subroute", handlers: `{"handler": "subroute", "routes": [{"handle": [{"handler": "error", "error": "{http.rate_limit.zone}"}]}]}`, observes: true},
		{name: "in a matcher", matcher: `{"vars": {"rate_limit": ["allowed"]}}`, observes: true},
		{name: "in a matcher within another", matcher: `{"not": [{"vars": {"{http.rate_limit.zone}": ["a"]}}]}`, observes: true},
		{name: "in an expression", matcher: `{"expression": "{http.rate_limit.remaining} == 0"}`, observes: true},
		{name: "escaped", handlers: `{"handler": "vars", "a": "{http.\u0072ate_limit.zone}"}`, observes: true, answers: true, raw: true},
		{name: "another limiter", handlers: limiter, observes: true, raw: true},
		{name: "templates", handlers: `{"handler": "templates"}, {"handler": "static_response"}`, observes: true, answers: true},
		{name: "browse", handlers: `{"handler": "file_server", "browse": {}}`, observes: true, answers: true},
		{name: "proxy", handlers: `{"handler": "reverse_proxy", "upstreams": [{"dial": "localhost:1"}]}`, answers: true, raw: true},
		{name: "proxy with a placeholder", handlers: `{"handler": "reverse_proxy", "headers": {"request": {"set": {"A": ["{http.rate_limit.zone}"]}}}}`, observes: true, answers: true, raw: true},
		{name: "unknown", handlers: `{"handler": "other", "a": "{http.rate_limit.zone}"}`, observes: true, answers: true, raw: true},

		{name: "field of an answer", handlers: `{"handler": "static_response", "headers": {"ratelimit": ["a", "b"]}}`, answers: true},
		{name: "any field of an answer", handlers: `{"handler": "static_response", "headers": {"{http.request.uri.query.a}": ["b"]}}`, answers: true},
		{name: "added field", handlers: `{"handler": "headers", "response": {"add": {"Ratelimit": ["a"]}}}`, answers: true},
		{name: "replaced field", handlers: `{"handler": "headers", "response": {"replace": {"Ratelimit": [{"search": "a", "replace": "b"}]}}}`, answers: true},
	} {
		for _, loaded := range []bool{false, true} {
			if loaded && c.raw {
				continue // needs more than there is here
			}
			matcher, handlers := c.matcher, c.handlers
			if matcher == "" {
				matcher = `{}`
			}
			if handlers == "" {
				handlers = `{"handler": "static_response"}`
			}
			server := new(caddyhttp.Server)
			if err := json.Unmarshal([]byte(`[{"match": [`+matcher+`], "handle": [`+handlers+`]}]`), &server.Routes); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			ctx, cancel := caddy.NewContext(caddy.Context{Context: context.WithValue(context.Background(), caddyhttp.ServerCtxKey, server)})
			defer cancel()
			if loaded {
				if err := server.Routes.ProvisionMatchers(ctx); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if err := server.Routes.ProvisionHandlers(ctx, new(caddyhttp.Metrics)); err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
			}
			server.Routes = append(server.Routes, caddyhttp.Route{HandlersRaw: []json.RawMessage{[]byte(limiter)}})
			r := Read(ctx)
			if got := r.Observes("rate_limit"); got != c.observes {
				t.Errorf("%s, loaded %t: observes is %t", c.name, loaded, got)
			}
			if got := r.Answers([]string{"Ratelimit"}); got != c.answers {
				t.Errorf("%s, loaded %t: answers is %t", c.name, loaded, got)
			}
		}
	}
	if r := Read(caddy.Context{Context: context.Background()}); !r.Observes("rate_limit") || !r.Answers(nil) {
		t.Error("without a server, nothing is known")
	}
}
