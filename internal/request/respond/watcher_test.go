package respond_test

import (
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

// TestUpstreamFieldsAreReplaced: the upstream's rate limit fields do not reach the client, however
// the response begins. Changes that handlers behind make to our fields do.
func TestUpstreamFieldsAreReplaced(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"replaced": {"max_events": 1000, "window": "1m"}}}`)
	add := func(w http.ResponseWriter) {
		w.Header().Add("RateLimit", `"upstream";r=7`)
		w.Header().Add("RateLimit", `"upstream 2";r=7`)
		w.Header().Add("RateLimit-Policy", `"upstream";q=7`)
		w.Header().Add("Vary", "Origin")
		w.Header().Add("Vary", "Accept")
	}
	for name, begin := range map[string]func(http.ResponseWriter){
		"WriteHeader": func(w http.ResponseWriter) { add(w); w.WriteHeader(http.StatusAccepted) },
		"Write":       func(w http.ResponseWriter) { add(w); _, _ = w.Write([]byte("x")) },
		"ReadFrom": func(w http.ResponseWriter) {
			add(w)
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("x"))
		},
		"Flush": func(w http.ResponseWriter) {
			add(w)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		},
		"early hints": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			add(w)
			w.WriteHeader(http.StatusOK)
		},
		"announced": func(w http.ResponseWriter) {
			w.Header().Set("Trailer", "X-More, ratelimit")
			add(w)
			w.WriteHeader(http.StatusOK)
		},
		"behind another writer": func(w http.ResponseWriter) {
			w = &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}
			add(w)
			w.WriteHeader(http.StatusOK)
		},
		"changed": func(w http.ResponseWriter) {
			w.Header().Del("RateLimit-Policy")
			w.Header()["Ratelimit"][0] = strings.ToUpper(w.Header()["Ratelimit"][0])
			w.Header().Add("RateLimit", `"upstream";r=7`)
			w.Header().Add("Vary", "Origin, Accept")
			w.WriteHeader(http.StatusOK)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := h.ServeHTTP(w, caddytest.Request(w, r.RemoteAddr), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				begin(w)
				return nil
			}))
			if err != nil {
				t.Error(err)
			}
		}))
		response, err := server.Client().Get(server.URL)
		server.Close()
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		limits, policies := response.Header["Ratelimit"], response.Header["Ratelimit-Policy"]
		_, trailer := response.Trailer["Ratelimit"]
		switch {
		case name == "changed":
			if len(limits) != 1 || !strings.HasPrefix(limits[0], `"REPLACED";R=`) || policies != nil {
				t.Errorf("%s: %q, %q", name, limits, policies)
			}
		case len(limits) != 1 || !strings.HasPrefix(limits[0], `"replaced";r=`) || !slices.Equal(policies, []string{`"replaced";q=1000;w=60`}):
			t.Errorf("%s: %q, %q", name, limits, policies)
		case trailer || len(response.Trailer) != strings.Count(name, "announced"):
			t.Errorf("%s: trailers %v", name, response.Trailer)
		case len(response.Header["Vary"]) != 2:
			t.Errorf("%s: other fields are gone: %v", name, response.Header)
		}
	}
}

// TestWriterOfErrorRoutes: error routes do not write to the writers of the routes that failed, so
// the handler gives them another one.
func TestWriterOfErrorRoutes(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"routes": {"max_events": 1000, "window": "1m"}}}`)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	fails := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(500, nil) })
	if err := h.ServeHTTP(w, r, fails); err == nil {
		t.Fatal("the handler behind failed, and there is no error")
	}
	err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Add("RateLimit", `"upstream";r=7`)
		w.WriteHeader(http.StatusBadGateway)
		return nil
	}))
	if got := w.Header().Values("RateLimit"); err != nil || !slices.Equal(got, []string{`"routes";r=998;t=60`}) {
		t.Errorf("RateLimit: %q, error %v, want only r=998", got, err)
	}
}

// TestOneWriter: all handlers that a response goes through share one writer.
func TestOneWriter(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"shared writer": {"max_events": 1000, "window": "1m"}}}`)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(first http.ResponseWriter, r *http.Request) error {
		between := &caddyhttp.ResponseWriterWrapper{ResponseWriter: first}
		return h.ServeHTTP(between, r, caddyhttp.HandlerFunc(func(second http.ResponseWriter, _ *http.Request) error {
			if first == http.ResponseWriter(w) || second != http.ResponseWriter(between) {
				t.Errorf("the first handler passed on %T, the second %T", first, second)
			}
			return nil
		}))
	}))
	if err != nil {
		t.Fatal(err)
	}
}

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
