package limiter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// BenchmarkUsage decides requests of many clients on all processors at once, without sums of what they use and with them. The
// sums of a store share one lock.
func BenchmarkUsage(b *testing.B) {
	for name, option := range map[string]string{"without": "", "with": `, "usage": {"window": "1h"}`} {
		b.Run(name, func(b *testing.B) {
			h := caddytest.Load(b, `{"rate_limits": {"a": {"key": "{http.vars.client_ip}", "algorithm": "token_bucket", "max_events": 1000000000, "window": "1s"`+option+`}}}`)
			var started atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				w, server := httptest.NewRecorder(), new(caddyhttp.Server)
				bare := httptest.NewRequest(http.MethodGet, "http://example.com/path", nil)
				for i := started.Add(1) * 100_000; p.Next(); i++ {
					clear(w.Header())
					r := caddyhttp.PrepareRequest(bare, caddy.NewReplacer(), w, server)
					caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, fmt.Sprintf("203.0.%d.%d", i/256%4, i%256))
					if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
