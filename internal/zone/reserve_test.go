package zone_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestReserve: only requests that match get the last slots.
func TestReserve(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"slots": {
		"algorithm": "concurrency", "max_events": 10, "reserve": {"percent": 25, "match": [{"path": ["/pay"]}]}
	}}}`)
	release := make(chan struct{})
	done := make(chan int, 32)
	enter := func(path string) (inside bool) {
		entered := make(chan bool, 1)
		go func() {
			w := httptest.NewRecorder()
			r := caddytest.Request(w, "203.0.113.7:1")
			r.URL.Path = path
			err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
				entered <- true
				<-release
				return nil
			}))
			if err != nil {
				done <- caddytest.StatusOf(err)
			} else {
				done <- w.Code
			}
			entered <- false
			if w.Code == 503 && w.Header().Get("Retry-After") != "1" {
				t.Errorf("status 503 with header %v, want Retry-After: 1", w.Header())
			}
		}()
		return <-entered
	}
	for i := range 10 {
		if inside := enter("/"); inside != (i < 7) { // 25 % of 10 slots are 3, rounded up
			t.Errorf("request %d: inside is %v", i+1, inside)
		}
	}
	for i := range 5 {
		if inside := enter("/pay"); inside != (i < 3) {
			t.Errorf("payment %d: inside is %v", i+1, inside)
		}
	}
	close(release)
	got := make(map[int]int)
	for range 15 {
		got[<-done]++
	}
	if got[200] != 10 || got[503] != 5 {
		t.Errorf("by status: %v, want 10 times 200 and 5 times 503", got)
	}
	if status, header := caddytest.Ask(t, h, "/"); status != 200 || header.Get("RateLimit-Policy") != `"slots";q=7;qu="concurrent-requests"` {
		t.Errorf("after all requests: status %d, header %v", status, header)
	}
}

// TestReserveInPlans: a refusal by a plan without slots has the status 429, because only the client
// is the reason.
func TestReserveInPlans(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"slots": {
		"algorithm": "concurrency", "max_events": 0, "reserve": {"percent": 25, "match": [{"path": ["/pay"]}]},
		"plan": {"of": "{http.vars.plan}", "plans": {"fleet": {}, "rate": {"algorithm": "token_bucket", "max_events": 1, "window": "1h"}}, "default": "fleet"}
	}}}`)
	if got := caddytest.Statuses(t, h, 1, "Plan", "fleet"); got != "503" {
		t.Errorf("plan with slots: %s, want 503", got)
	}
	if got := caddytest.Statuses(t, h, 2, "Plan", "rate"); got != "200 429" {
		t.Errorf("plan without slots: %s, want 200 429", got)
	}
}
