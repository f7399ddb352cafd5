package respond_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestAllocations: a request allocates the values of its headers, and what shows its decision only if something
// may look at it. With -race, pools forget what they have, which takes another one on average.
func TestAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		routes string
		most   float64
	}{
		"unseen": {`[]`, 2},
		"seen":   {`[{"handle": [{"handler": "static_response", "body": "{http.rate_limit.zone}"}]}]`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			server, ctx := new(caddyhttp.Server), caddytest.Config(t)
			if err := json.Unmarshal([]byte(c.routes), &server.Routes); err != nil {
				t.Fatal(err)
			}
			h := caddytest.LoadInto(t, ctx.WithValue(caddyhttp.ServerCtxKey, server), `{"rate_limits": {"zone": {"max_events": 1000000, "window": "1h"}}}`)
			w := httptest.NewRecorder()
			r := caddytest.Request(w, "203.0.113.7:1")
			if n := testing.AllocsPerRun(2000, func() {
				caddyhttp.SetVar(r.Context(), "rate_limit", nil) // as in a new request
				if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
					t.Error(err)
				}
			}); n > c.most {
				t.Errorf("%v allocations, want at most %v", n, c.most)
			}
		})
	}
}

// TestUnseenRecord: if nothing looks at the decision, a request that passes has its headers and the writer that keeps them: no
// variable. A refused one is shown as ever. TestObserves in routes has all that may look.
func TestUnseenRecord(t *testing.T) {
	const options = `"rate_limits": {"unseen": {"max_events": 1, "window": "1h"}}}`
	for name, c := range map[string]struct {
		others string
		logs   *caddyhttp.ServerLogConfig
		seen   bool
	}{
		"nobody":         {others: `{"handler": "static_response", "body": "ok"}`},
		"a placeholder":  {others: `{"handler": "static_response", "body": "{http.rate_limit.zone}"}`, seen: true},
		"the access log": {others: `{"handler": "static_response", "body": "ok"}`, logs: new(caddyhttp.ServerLogConfig), seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := &caddyhttp.Server{Logs: c.logs}
			ctx := caddytest.Config(t)
			ctx = ctx.WithValue(caddyhttp.ServerCtxKey, server)
			if err := json.Unmarshal([]byte(`[{"handle": [`+c.others+`]}]`), &server.Routes); err != nil {
				t.Fatal(err)
			}
			if err := server.Routes.ProvisionHandlers(ctx, new(caddyhttp.Metrics)); err != nil {
				t.Fatal(err)
			}
			h := caddytest.LoadInto(t, ctx, `{`+options)
			server.Routes = append(server.Routes, caddyhttp.Route{Handlers: []caddyhttp.MiddlewareHandler{h}})
			for _, passes := range []bool{true, false} {
				w := httptest.NewRecorder()
				r := caddytest.Request(w, "203.0.113.7:1")
				var through http.ResponseWriter
				err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
					through = w
					return nil
				}))
				if err != nil {
					t.Fatal(err)
				}
				if got := w.Header().Get("RateLimit"); got != `"unseen";r=0;t=3600` {
					t.Errorf("RateLimit is %s", got)
				}
				if got := w.Header().Get("RateLimit-Policy"); got != `"unseen";q=1;w=3600` {
					t.Errorf("RateLimit-Policy is %s", got)
				}
				if seen := caddyhttp.GetVar(r.Context(), "rate_limit") != nil; seen != (c.seen || !passes) {
					t.Errorf("passes %t: seen is %t", passes, seen)
				}
				if passes && through == http.ResponseWriter(w) {
					t.Error("the response is not wrapped")
				}
			}
		})
	}
}
