package respond_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
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
		switch {
		case name == "changed":
			if len(limits) != 1 || !strings.HasPrefix(limits[0], `"REPLACED";R=`) || policies != nil {
				t.Errorf("%s: %q, %q", name, limits, policies)
			}
		case len(limits) != 1 || !strings.HasPrefix(limits[0], `"replaced";r=`) || !slices.Equal(policies, []string{`"replaced";q=1000;w=60`}):
			t.Errorf("%s: %q, %q", name, limits, policies)
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
