package caddyratelimit

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// config stands for a loaded config.
func config(t testing.TB) caddy.Context {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}})
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// provision loads a handler into a config, for as long as the test runs.
func provision(t testing.TB, ctx caddy.Context, json string) *Handler {
	t.Helper()
	module, err := ctx.LoadModuleByID("http.handlers.rate_limit", []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	h := module.(*Handler)
	h.events.started.Store(true) // tests start no apps
	t.Cleanup(func() {
		if err := h.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// request is a request as Caddy hands it to a handler.
func request(w http.ResponseWriter, remote string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/path", nil)
	r.RemoteAddr = remote
	repl := caddy.NewReplacer()
	return caddyhttp.PrepareRequest(r, repl, w, new(caddyhttp.Server))
}

// passing answers 200 for the handlers behind.
var passing = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })

// serve sends a request through a handler and returns the status and the header.
func serve(t testing.TB, h *Handler, remote string) (int, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	err := h.ServeHTTP(w, request(w, remote), passing)
	if err == nil {
		return w.Code, w.Header()
	}
	handlerErr, ok := err.(caddyhttp.HandlerError) //nolint:errorlint // Caddy's server looks no deeper
	if !ok {
		t.Fatalf("unexpected error: %v", err)
	}
	return handlerErr.StatusCode, w.Header()
}

// replaced expands placeholders as a handler behind would.
func replaced(r *http.Request, text string) string {
	return r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).ReplaceAll(text, "")
}

// oneRefusal is what the first zone of a handler says to a client.
func oneRefusal(h *Handler, key string) *refusal {
	z := h.zones[0]
	return &refusal{
		zone: z, key: key, grant: z.Policy, decision: algorithms.Decision{RetryAfter: algorithms.Never},
		status: h.Status, err: z.Exceeded,
	}
}
