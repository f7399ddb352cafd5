//go:build deep

package observe_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestCollector: metrics and decisions reach an OpenTelemetry collector by OTLP over HTTP, through what Caddy has for
// that. The stand-in for a collector checks the requests.
func TestCollector(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := make(map[string][]byte)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if kind := r.Header.Get("Content-Type"); err != nil || r.Method != http.MethodPost || kind != "application/x-protobuf" {
			t.Errorf("%s %s with %s: %v", r.Method, r.URL.Path, kind, err)
		}
		mu.Lock()
		sent[r.URL.Path] = append(sent[r.URL.Path], body...)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty message, which means that all was accepted
	}))
	t.Cleanup(collector.Close)
	s := harness.StartCaddy(t, harness.Caddyfile(`
		metrics {
			otlp
		}`, `
		tracing {
			span traced
			span_attributes {
				rate_limit.outcome {vars.rate_limit}
				rate_limit.zone {http.rate_limit.zone}
			}
		}
		rate_limit {
			zone collected {
				events 1
				window 1h
			}
		}
		respond ok`), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	client := harness.NewClient(t, "")
	s.Get(client, "/")
	s.Get(client, "/")
	s.Stop() // sends the rest
	mu.Lock()
	defer mu.Unlock()
	for path, texts := range map[string][]string{
		"/v1/metrics": {"caddy_rate_limit_decisions_total", "caddy_rate_limit_store_up", "collected", "limited"},
		"/v1/traces":  {"traced", "rate_limit.outcome", "rate_limit.zone", "collected", "limited"},
	} {
		for _, text := range texts {
			if !bytes.Contains(sent[path], []byte(text)) {
				t.Errorf("%s has not got %s in %d bytes", path, text, len(sent[path]))
			}
		}
	}
}
