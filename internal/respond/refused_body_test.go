package respond_test

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestRefusedBodiesAreNotRead: a zone in a handler before one with cost_request refuses requests without
// reading their bodies, as docs/llm.md says.
func TestRefusedBodiesAreNotRead(t *testing.T) {
	first := caddytest.Load(t, `{"rate_limits": {"requests": {"max_events": 0, "window": "1h"}}}`)
	second := caddytest.Load(t, `{"rate_limits": {"tokens": {"max_events": 1000, "window": "1h", "cost_request": {"json": ["max_tokens"]}}}}`)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	r.Body, r.ContentLength = io.NopCloser(unread{t}), 100
	if status := caddytest.StatusOf(caddytest.ServeTwo(first, second, w, r)); status != 429 && w.Code != 429 {
		t.Errorf("status %d, %d", status, w.Code)
	}
}
