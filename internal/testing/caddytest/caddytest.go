// Package caddytest tests the rate limiter as Caddy runs it: it provisions handlers from JSON,
// sends requests through them, and reads what they log, count and emit. A test that uses it
// imports the module for its handler:
//
//	import _ "github.com/seed-161337e5/caddyratelimit"
package caddytest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Handler is a rate limit handler, or one of adaptive_concurrency.
type Handler interface {
	caddyhttp.MiddlewareHandler
	caddy.CleanerUpper
}

// Config returns the context of a loaded config. Its apps are not started. It logs warnings
// and errors alone.
func Config(t testing.TB) caddy.Context {
	t.Helper()
	return provisionConfig(t, caddy.BaseLog{Level: "WARN"})
}

// provisioning is held while a config is provisioned, because Caddy sets variables of the process then.
var provisioning sync.Mutex

func provisionConfig(t testing.TB, log caddy.BaseLog) caddy.Context {
	t.Helper()
	provisioning.Lock()
	defer provisioning.Unlock()
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: log}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// Load loads a handler into a config of its own.
func Load(t testing.TB, json string) Handler {
	t.Helper()
	return LoadInto(t, Config(t), json)
}

// LoadInto loads a handler into a config. It is cleaned up when the test ends.
func LoadInto(t testing.TB, ctx caddy.Context, json string) Handler {
	t.Helper()
	h, err := TryLoad(ctx, json)
	if err != nil {
		t.Fatal(err)
	}
	Started(t, ctx)
	t.Cleanup(func() { CleanUp(t, h) })
	return h
}

// Started tells the handlers of a config that its apps have started. Before, they emit no events, and requests wait.
func Started(t testing.TB, ctx caddy.Context) {
	t.Helper()
	app[*caddyevents.App](t, ctx, "events").Emit(ctx, "started", nil)
}

// app returns an app of a config.
func app[App any](t testing.TB, ctx caddy.Context, name string) App {
	t.Helper()
	loaded, err := ctx.App(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded.(App)
}

// TryLoad loads a handler into a config, if the handler is valid. The JSON of another one than rate_limit is behind its name.
func TryLoad(ctx caddy.Context, json string) (Handler, error) {
	name := "rate_limit"
	if i := strings.IndexByte(json, '{'); i > 0 {
		name, json = strings.TrimSpace(json[:i]), json[i:]
	}
	module, err := ctx.LoadModuleByID("http.handlers."+name, []byte(json))
	if err != nil {
		return nil, err
	}
	return module.(Handler), nil
}

// CleanUp ends the use of a handler before the test ends.
func CleanUp(t testing.TB, h Handler) {
	t.Helper()
	if err := h.Cleanup(); err != nil {
		t.Fatal(err)
	}
}

// Passing is the handler behind: it answers 200.
var Passing = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })

// Request returns a request as Caddy hands it to a handler.
func Request(w http.ResponseWriter, remote string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/path", nil)
	r.RemoteAddr = remote
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
}

// RequestTo returns a request as Caddy's server reads it from a connection, or nil if the
// target is not valid.
func RequestTo(host, target string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil
	}
	r := &http.Request{Method: http.MethodGet, URL: u, Host: host, RequestURI: target, Header: make(http.Header)}
	if u.Host != "" {
		r.Host = u.Host
	}
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
}

// Serve sends a request through a handler and returns the status and the header.
func Serve(t testing.TB, h Handler, remote string) (int, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	return answer(h, w, Request(w, remote)), w.Header()
}

// Status sends a request through a handler and returns the status.
func Status(h Handler, r *http.Request) int { return answer(h, httptest.NewRecorder(), r) }

func answer(h Handler, w *httptest.ResponseRecorder, r *http.Request) int {
	if err := h.ServeHTTP(w, r, Passing); err != nil {
		return StatusOf(err)
	}
	return w.Code
}

// StatusOf is the status that an error of a handler asks for.
func StatusOf(err error) int {
	if e, ok := errors.AsType[caddyhttp.HandlerError](err); ok && e.StatusCode != 0 {
		return e.StatusCode
	}
	return http.StatusInternalServerError
}

// Ask sends a request with headers, names and values in turn. They are also variables
// of the request, in lower case: {http.vars.x-plan}.
func Ask(t testing.TB, h Handler, path string, header ...string) (int, http.Header) {
	t.Helper()
	return AskFrom(t, h, "203.0.113.7", path, header...)
}

// AskFrom is [Ask] from another client.
func AskFrom(t testing.TB, h Handler, client, path string, header ...string) (int, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	r := Request(w, client+":1000")
	r.URL.Path, r.RequestURI = path, path
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, client)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
		caddyhttp.SetVar(r.Context(), strings.ToLower(header[i]), header[i+1])
	}
	return answer(h, w, r), w.Header()
}

// Statuses sends the same request n times and returns the statuses: "200 200 429".
func Statuses(t testing.TB, h Handler, n int, header ...string) string {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		status, _ := Ask(t, h, "/", header...)
		all[i] = fmt.Sprint(status)
	}
	return strings.Join(all, " ")
}

// Replaced expands placeholders as a handler behind would.
func Replaced(r *http.Request, text string) string {
	return r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceAll(text, "")
}

// ServeTwo sends a request through two handlers, the second behind the first.
func ServeTwo(first, second Handler, w http.ResponseWriter, r *http.Request) error {
	return first.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return second.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return nil
		}))
	}))
}
