package late_test

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// discard is a response that goes nowhere.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// BenchmarkEvent writes and flushes an event of a stream: with a cost that is fixed before, with one that a
// header says, and with one that is read from the stream.
func BenchmarkEvent(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}],"usage":null}` + "\n\n")
	for name, option := range map[string]string{
		"fixed": "", "cost_header": `, "charge": {"header": "X-Tokens"}`, "cost_response": `, "charge": {"json": ["usage.prompt_tokens", "usage.completion_tokens*4"]}`,
	} {
		b.Run(name, func(b *testing.B) {
			h := caddytest.Load(b, `{"rate_limits": {"tokens": {"algorithm": "token_bucket", "max_events": 1000000, "window": "1h"`+option+`}}}`)
			w := discard{make(http.Header)}
			err := h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Content-Type", "text/event-stream")
				control := http.NewResponseController(w)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.Write(event); err != nil {
						return err
					}
					if err := control.Flush(); err != nil {
						return err
					}
				}
				return nil
			}))
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
