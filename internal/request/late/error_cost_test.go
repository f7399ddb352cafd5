package late_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestCostOfErrorRoutes: the response of an error route costs what it says if it is whole. If that cannot be
// known, it costs no less than what was booked. A client that leaves while the route still writes disturbs
// nothing: the race detector sees it.
func TestCostOfErrorRoutes(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	ctx := caddytest.Config(t)
	zone := `"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 10000, "window": "1h", "cost": 50,
		"charge": {"json": ["usage.total"]`
	h := caddytest.LoadInto(t, ctx, `{`+kept.Option()+`"rate_limits": {"plain": {`+zone+`}}, "options": {`+zone+`, "broken_off": 60, "unknown": 70}}}}`)
	caddytest.Run(t, ctx)
	const sse, json = "text/event-stream", "application/json"
	small, large := `{"usage":{"total":11}}`, `{"usage":{"total":90}}`
	for name, c := range map[string]struct {
		status                    int
		contentType, body, length string
		writes                    bool // while the client leaves
		plain, options            int64
	}{
		"of known length":           {200, json, small, "22", false, 11, 11},
		"shorter than announced":    {200, json, small, "23", false, 50, 50},
		"of unknown length":         {200, json, small, "", false, 50, 50},
		"large":                     {200, json, large, "", false, 90, 90},
		"stream":                    {200, sse, "data: " + small + "\n\n", "", false, 50, 50},
		"stream with its end":       {200, sse, "data: " + small + "\n\ndata: [DONE]\n\n", "", false, 11, 11},
		"stream that says nothing":  {200, sse, "data: {}\n\n", "", false, 50, 60},
		"error that says nothing":   {503, json, "{}", "", false, 50, 50},
		"still written":             {200, sse, "data: " + small + "\n\n", "", true, 50, 50},
		"still written, compressed": {200, json, zipped(small), "", true, 50, 50},
	} {
		w := httptest.NewRecorder()
		idle := &caddyhttp.IdleTimeoutWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, Ctrl: http.NewResponseController(w), Logger: zap.NewNop()}
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Client", name)
		left, leave := context.WithCancel(caddyhttp.ContextWithIdleTimeouts(r.Context(), nil, idle))
		before := results(t, ctx)
		err := h.ServeHTTP(idle, r.WithContext(left), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			return caddyhttp.Error(502, errors.New("no upstream"))
		}))
		if err == nil {
			t.Fatal("no error")
		}
		idle.Header().Set("Content-Type", c.contentType)
		if c.length != "" {
			idle.Header().Set("Content-Length", c.length)
		}
		if strings.HasSuffix(name, "compressed") {
			idle.Header().Set("Content-Encoding", "gzip")
		}
		idle.WriteHeader(c.status)
		_, _ = io.WriteString(idle, c.body)
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for c.writes {
				select {
				case <-stop:
					return
				default:
					_, _ = io.WriteString(idle, c.body) // which can be decoded wherever it ends
				}
			}
		}()
		leave()
		patient.Until(t, "charges", func() bool { return results(t, ctx) == before+2 })
		close(stop)
		<-stopped
		if plain, options := kept.Used(t, "plain", name), kept.Used(t, "options", name); plain != c.plain || options != c.options {
			t.Errorf("%s: charged %d and %d, want %d and %d", name, plain, options, c.plain, c.options)
		}
	}
}

// results returns how many charges have been settled by responses.
func results(t *testing.T, ctx caddy.Context) (n float64) {
	for name, value := range caddytest.Scrape(t, ctx) {
		if strings.HasPrefix(name, "response_costs_total{") {
			n += value
		}
	}
	return n
}
