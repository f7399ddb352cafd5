package late_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// wait499 waits until the client of a request has left, and returns the error that a proxy does.
func wait499(r *http.Request) error {
	<-r.Context().Done()
	return caddyhttp.Error(499, r.Context().Err())
}

// TestClientsThatLeavePay: if a client leaves before the response, it cannot be known what that
// would have been, so the request stays charged. Otherwise clients could try passwords and leave
// before the server refuses them.
func TestClientsThatLeavePay(t *testing.T) {
	begin := func(w http.ResponseWriter, status int) {
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush()
	}
	responses := []struct {
		name   string
		charge int64
		begun  bool // the client stays until the response has begun
		behind caddyhttp.HandlerFunc
	}{
		{"returned 499", 1, false, func(_ http.ResponseWriter, r *http.Request) error { return wait499(r) }},
		{"written 200", 1, false, func(w http.ResponseWriter, r *http.Request) error {
			_ = wait499(r)
			_, err := io.WriteString(w, "ok")
			return err
		}},
		{"panic", 1, false, func(_ http.ResponseWriter, r *http.Request) error { _ = wait499(r); panic(http.ErrAbortHandler) }},
		{"panic, and the client stays", 1, true, func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }},
		{"502, and the client stays", 0, true, func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("upstream failed"))
		}},
		{"200, and then the client leaves", 0, true, func(w http.ResponseWriter, r *http.Request) error {
			begin(w, 200)
			return wait499(r)
		}},
		{"401, and then the client leaves", 1, true, func(w http.ResponseWriter, r *http.Request) error {
			begin(w, 401)
			_ = wait499(r)
			panic(http.ErrAbortHandler)
		}},
	}
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"logins": {"key": "{http.request.header.Client}",
		"algorithm": "fixed_window", "align": "first_request", "max_events": 10, "window": "1h", "charge": {"status": ["401"]}}}}`)
	for _, http2 := range []bool{false, true} {
		for _, c := range responses {
			key := fmt.Sprint(c.name, http2)
			e := caddytest.Send(t, h, http2, c.behind, "Client", key)
			<-e.Inside
			if c.begun {
				e.Response <- <-e.Response
			}
			e.Leave()
			<-e.Done
			if got := kept.Used(t, "logins", key); got != c.charge {
				t.Errorf("%s, HTTP/2 %v: charged %d, want %d", c.name, http2, got, c.charge)
			}
		}
	}
}

// TestStatus499: a zone whose charge has the status 499 decides itself whether clients
// that leave are charged.
func TestStatus499(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"logins": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request",
		"max_events": 10, "window": "1h", "charge": {"status": ["401", "499"], "match_header": {"X-Failed": ["*"]}}}}}`)
	for key, want := range map[string]int64{"": 0, "1": 1} {
		e := caddytest.Send(t, h, false, func(w http.ResponseWriter, r *http.Request) error {
			if key != "" {
				w.Header().Set("X-Failed", key)
			}
			return wait499(r)
		}, "Client", key)
		<-e.Inside
		e.Leave()
		<-e.Done
		if got := kept.Used(t, "logins", key); got != want {
			t.Errorf("X-Failed %q: charged %d, want %d", key, got, want)
		}
	}
}

// TestBrokenOffAnswers: a response that ends before its header says what the request has cost costs broken_off, or what
// was charged before if the zone has no such option. TestCostResponse has the other ways in which a response may end.
func TestBrokenOffAnswers(t *testing.T) {
	begin := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, "some ")
		_ = http.NewResponseController(w).Flush()
	}
	responses := []struct {
		name          string
		cost, without int64 // in a zone with broken_off, and in another one
		behind        caddyhttp.HandlerFunc
	}{
		{"during the response", 500, 10, func(w http.ResponseWriter, r *http.Request) error {
			begin(w)
			_ = wait499(r)
			panic(http.ErrAbortHandler)
		}},
		{"after the field", 70, 70, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("X-Tokens", "70")
			begin(w)
			_ = wait499(r)
			panic(http.ErrAbortHandler)
		}},
		{"complete", 10, 10, func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("Content-Length", "5")
			begin(w)
			return wait499(r)
		}},
	}
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {
		"tokens": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h",
			"cost": 10, "charge": {"header": "X-Tokens", "broken_off": 500}},
		"without": {"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h",
			"cost": 10, "charge": {"header": "X-Tokens"}}
	}}`)
	for _, http2 := range []bool{false, true} {
		for _, c := range responses {
			key := fmt.Sprint(c.name, http2)
			e := caddytest.Send(t, h, http2, c.behind, "Client", key)
			e.End("later", func() {})
			if with, without := kept.Used(t, "tokens", key), kept.Used(t, "without", key); with != c.cost || without != c.without {
				t.Errorf("%s, HTTP/2 %v: charged %d and %d, want %d and %d", c.name, http2, with, without, c.cost, c.without)
			}
		}
	}
}

// TestCostOfErrorRoutes: the status and the header of the response of an error route decide what the request costs. Its body is
// not read. If the client leaves before, the charges stay as they are.
func TestCostOfErrorRoutes(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	zone := `"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h", "cost": 50, "charge": `
	h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {
		"json": {`+zone+`{"json": ["usage.total"], "unknown": 70}}, "status": {`+zone+`{"status": ["401"]}}, "header": {`+zone+`{"header": "X-Cost"}}}}`)
	for name, c := range map[string]struct {
		status               int
		left                 bool
		json, judged, header int64
	}{
		"fallback": {200, false, 70, 0, 7},
		"denied":   {401, false, 50, 50, 7},
		"failed":   {503, false, 50, 0, 7},
		"left":     {503, true, 50, 50, 50},
	} {
		w := httptest.NewRecorder()
		idle := &caddyhttp.IdleTimeoutWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, Ctrl: http.NewResponseController(w), Logger: zap.NewNop()}
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Client", name)
		r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server).Errors = &caddyhttp.HTTPErrorConfig{Routes: caddyhttp.RouteList{{}}}
		ctx, leave := context.WithCancel(caddyhttp.ContextWithIdleTimeouts(r.Context(), nil, idle))
		err := h.ServeHTTP(idle, r.WithContext(ctx), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("no upstream"))
		}))
		if err == nil {
			t.Fatal("no error")
		}
		if c.left {
			leave()
		}
		idle.Header().Set("Content-Type", "application/json")
		idle.Header().Set("X-Cost", "7")
		idle.WriteHeader(c.status)
		_, _ = io.WriteString(idle, `{"usage":{"total":11}}`)
		leave()
		for of, want := range map[string]int64{"json": c.json, "status": c.judged, "header": c.header} {
			if got := kept.Used(t, of, name); got != want {
				t.Errorf("%s: zone %s has charged %d, want %d", name, of, got, want)
			}
		}
		if w.Header().Get("X-Cost") != "" || w.Code != c.status {
			t.Errorf("%s: the client sees %d, %v", name, w.Code, w.Header())
		}
	}
}
