package caddyratelimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// BenchmarkKeys measures a decision by what its key is made of. All requests have common header
// fields.
func BenchmarkKeys(b *testing.B) {
	for _, c := range []struct{ name, key string }{
		{"none", ""},
		{"client_ip", "{http.vars.client_ip}"},
		{"header", "{http.request.header.X-Api-Key}"},
		{"query", "{http.request.uri.query.key}"},
		{"cookie", "{http.request.cookie.session}"},
		{"host", "{http.request.host}"},
		{"path", "{http.request.uri.path}"},
		{"uri", "{http.request.uri}"},
		{"client_ip+path", "{http.vars.client_ip} {http.request.uri.path}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := caddytest.Load(b, `{"rate_limits": {"a": {"key": "`+c.key+`", "algorithm": "token_bucket", "max_events": 1000000000, "window": "1s"}}}`)
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://www.example.com/api/v1/items/17?a=b&key=s3cr3t", nil)
			r.Header.Set("X-Api-Key", "key-of-alice")
			r.Header.Set("Cookie", "a=b; session=0123456789abcdef")
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, "203.0.113.7")
			b.ReportAllocs()
			for b.Loop() {
				if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
