package routes

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// TestObserves: what may look at the placeholders of a handler is known from the options of the others. Where they do not say
// it, everything may be.
func TestObserves(t *testing.T) {
	const limits = `{"handler": "rate_limit"}`
	for _, c := range []struct {
		name, handlers, matcher string
		observes                bool
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
		{name: "escaped", handlers: `{"handler": "vars", "a": "{http.\u0072ate_limit.zone}"}`, observes: true},
		{name: "tracing", handlers: `{"handler": "tracing", "span": "{http.rate_limit.zone}"}`, observes: true},
		{name: "another limiter", handlers: limits, observes: true},
		{name: "templates", handlers: `{"handler": "templates"}, {"handler": "static_response"}`, observes: true},
		{name: "browse", handlers: `{"handler": "file_server", "browse": {}}`, observes: true},
		{name: "proxy with a placeholder", handlers: `{"handler": "reverse_proxy", "headers": {"request": {"set": {"A": ["{http.rate_limit.zone}"]}}}}`, observes: true},
	} {
		server := serve(t, c.matcher, c.handlers, limits)
		if got := Of(server).Observe(); got != c.observes {
			t.Errorf("%s: observe is %t", c.name, got)
		}
	}
	server := serve(t, "", "", limits)
	server.Routes[0].Handlers = append(server.Routes[0].Handlers, struct {
		caddyhttp.MiddlewareHandler
		caddy.Module
	}{new(limiter), limiter{}}) // of another package
	if !Of(server).Observe() {
		t.Error("what a foreign handler does is not known")
	}
	if !Of(nil).Observe() {
		t.Error("without a server, nothing is known")
	}
	if server := serve(t, "", "", `{"handler": "static_response"}`); Of(server).Observe() {
		t.Error("nothing looks at a decision")
	} else if server.NamedRoutes = map[string]*caddyhttp.Route{"a": {}}; !Of(server).Observe() {
		t.Error("a named route may run several times")
	}
}

// serve returns a server with a route of a matcher and handlers, and one with another handler, all loaded.
func serve(t *testing.T, matcher, handlers, last string) *caddyhttp.Server {
	t.Helper()
	server := new(caddyhttp.Server)
	text := `[{"match": [` + cmp.Or(matcher, "{}") + `], "handle": [` + cmp.Or(handlers, `{"handler": "static_response"}`) + `]}, {"handle": [` + last + `]}]`
	if err := json.Unmarshal([]byte(text), &server.Routes); err != nil {
		t.Fatal(err)
	}
	ctx, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx = ctx.WithValue(caddyhttp.ServerCtxKey, server)
	if err := cmp.Or(server.Routes.ProvisionMatchers(ctx), server.Routes.ProvisionHandlers(ctx, new(caddyhttp.Metrics))); err != nil {
		t.Fatalf("%s, %s: %v", matcher, handlers, err)
	}
	return server
}

// limiter replaces the handler rate_limit, which this package is too low to import.
type limiter struct{ _ int }

func init() { caddy.RegisterModule(limiter{}) }

func (limiter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.rate_limit", New: func() caddy.Module { return new(limiter) }}
}

func (*limiter) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error { return nil }

// TestForeignKinds: what a module of another package looks at is not known, also if it is no struct, as many matchers.
func TestForeignKinds(t *testing.T) {
	defer func(all []string) { known = all }(known)
	known = known[:1] // so that the modules below are of another package
	for _, module := range []any{list{"a"}, fields{"a": "b"}, text("a"), pass(nil)} {
		var s Routes
		s.value(reflect.ValueOf([]any{module}))
		if !s.observes {
			t.Errorf("%T is not seen as foreign", module)
		}
	}
}

type (
	list   []string
	fields map[string]string
	text   string
	pass   func()
)

func (list) CaddyModule() (info caddy.ModuleInfo)   { return info }
func (fields) CaddyModule() (info caddy.ModuleInfo) { return info }
func (text) CaddyModule() (info caddy.ModuleInfo)   { return info }
func (pass) CaddyModule() (info caddy.ModuleInfo)   { return info }
