package late_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

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
