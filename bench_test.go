package caddyratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// BenchmarkHandler measures the handler with the memory store. The handler "empty" does nothing. Nothing looks at the
// decisions of "unseen".
func BenchmarkHandler(b *testing.B) {
	const limit = `"max_events": %d, "window": "1s", "algorithm": "token_bucket"`
	for _, c := range []struct {
		name  string
		keys  int
		zones string
	}{
		{"empty", 1, ""},
		{"keys=1", 1, `"a": {"key": "{http.vars.client_ip}", ` + fmt.Sprintf(limit, 1_000_000_000) + `}`},
		{"unseen", 1, `"a": {"key": "{http.vars.client_ip}", ` + fmt.Sprintf(limit, 1_000_000_000) + `}`},
		{"keys=100000", 100_000, `"a": {"key": "{http.vars.client_ip}", ` + fmt.Sprintf(limit, 1_000_000_000) + `}`},
		{"zones=3", 100_000, `"a": {"key": "{http.vars.client_ip}", ` + fmt.Sprintf(limit, 1_000_000_000) + `},
			"b": {"key": "{http.request.host}", ` + fmt.Sprintf(limit, 1_000_000_000) + `},
			"c": {` + fmt.Sprintf(limit, 1_000_000_000) + `}`},
		{"refused", 1, `"a": {"key": "{http.vars.client_ip}", ` + fmt.Sprintf(limit, 0) + `}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var handler caddyhttp.MiddlewareHandler = emptyHandler{}
			server, w := new(caddyhttp.Server), httptest.NewRecorder()
			if c.zones != "" {
				ctx := caddytest.Config(b)
				if c.name == "unseen" {
					ctx = ctx.WithValue(caddyhttp.ServerCtxKey, server)
				}
				handler = caddytest.LoadInto(b, ctx, `{"rate_limits": {`+c.zones+`}}`)
			}
			addresses := make([]string, c.keys)
			for i := range addresses {
				addresses[i] = fmt.Sprintf("203.%d.%d.%d", i/65536, i/256%256, i%256)
			}
			bare := httptest.NewRequest(http.MethodGet, "http://example.com/path", nil)
			bare.RemoteAddr = "203.0.113.7:1"
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				r := caddyhttp.PrepareRequest(bare, caddy.NewReplacer(), w, server)
				r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)[caddyhttp.ClientIPVarKey] = addresses[i%len(addresses)]
				i++
				if err := handler.ServeHTTP(w, r, caddytest.Passing); err != nil && c.name != "refused" {
					b.Fatal(err)
				}
			}
		})
	}
}

type emptyHandler struct{}

func (emptyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	_ = r.Context().Value(caddy.ReplacerCtxKey)
	return next.ServeHTTP(w, r)
}
