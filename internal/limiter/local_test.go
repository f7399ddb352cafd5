package limiter_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// hold sends a request that stays in the handlers behind until the context ends. It reports whether
// the request has passed.
func hold(t *testing.T, ctx context.Context, h caddytest.Handler) (passed bool) {
	t.Helper()
	entered, left := make(chan bool, 2), make(chan struct{})
	go func() {
		defer close(left)
		w := httptest.NewRecorder()
		_ = h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			entered <- true
			<-ctx.Done()
			return nil
		}))
		entered <- false // which is not read if the request has passed
	}()
	passed = <-entered
	t.Cleanup(func() { <-left })
	return passed
}

// TestSlotsReturnToTheirStore: slots of Redis return to it, also if it hangs when their requests
// end. Slots that were lent locally meanwhile are free in the next outage.
//
// With a deny cache, the refusal of the fifth request could refuse those that get no answer a moment later.
func TestSlotsReturnToTheirStore(t *testing.T) {
	server := redistest.Start(t)
	h := caddytest.Load(t, fmt.Sprintf(`{
		"on_store_error": "local", "instances": 2,
		"store": {"backend": "redis", "address": [%q], "timeout": "3s", "deny_cache": 0},
		"rate_limits": {"slots": {"algorithm": "concurrency", "max_events": 4}}
	}`, server.Addr()))
	slots := func() int64 { return server.Slots("rl:{*}:slots:concurrency.4") }
	holdAll := func(ctx context.Context, n int) (passed int) { // at once, so that all wait for Redis together
		results := make(chan bool, n)
		for range n {
			go func() { results <- hold(t, ctx, h) }()
		}
		for range n {
			if <-results {
				passed++
			}
		}
		return passed
	}

	early, endEarly := context.WithCancel(context.Background())
	defer endEarly()
	if n := holdAll(early, 5); n != 4 || slots() != 4 {
		t.Fatalf("%d passed and %d hold a slot in Redis, want 4 and 4", n, slots())
	}
	for outage := range 2 { // in the second one all local slots must be free again
		server.Freeze()
		local, endLocal := context.WithCancel(context.Background())
		defer endLocal()
		if n := holdAll(local, 8); n != 2 {
			t.Fatalf("outage %d: %d passed, want half of 4", outage+1, n)
		}
		endLocal()
		if outage == 0 {
			endEarly()
		}
		server.Thaw()
		// Redis carries out now what was sent to it while it hung. All these slots are given back,
		// long before their leases end.
		free := 0
		patient.Until(t, "the slots in Redis", func() bool {
			time.Sleep(50 * time.Millisecond)
			if free++; slots() != 0 {
				free = 0
			}
			return free == 10
		})
	}
}

// TestShareOfACost: a cost that does not fit this instance's share of the limit is refused.
// Otherwise ten instances would together admit four times the limit.
func TestShareOfACost(t *testing.T) {
	h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"on_store_error": "local", "instances": 10, "rate_limits": {
		"costly": {"max_events": 50, "window": "1h", "cost": "{http.request.header.Cost}"}
	}}`)
	for i, c := range []struct {
		cost string
		want int
	}{{"20", 429}, {"6", 429}, {"5", 200}, {"1", 429}} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Cost", c.cost)
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil || w.Code != c.want {
			t.Errorf("request %d of cost %s: %d, %v; want %d", i+1, c.cost, w.Code, err, c.want)
		}
	}
}

// TestShareIsShown: while an instance decides alone, all that it shows of a limit is its share.
func TestShareIsShown(t *testing.T) {
	for _, c := range []struct{ limit, policy, left, most, rate string }{
		{`"max_events": 10, "window": "1m"`, `"all";q=5;w=60`, `"all";r=4;t=`, "5", "0.083"},
		{`"algorithm": "fixed_window", "max_events": 10, "window": "day"`, `"all";q=5;w=86400`, `"all";r=4;t=`, "5", "0"},
		{`"algorithm": "token_bucket", "max_events": 10, "window": "1s", "burst": 40`, `"all";q=20;w=4`, `"all";r=19;t=`, "20", "5"},
		{`"algorithm": "leaky_bucket", "mode": "queue", "max_events": 100, "window": "1s"`, `"all";q=50;w=1`, `"all";r=49;t=`, "50", "50"},
		{`"algorithm": "concurrency", "max_events": 10`, `"all";q=5;qu="concurrent-requests"`, `"all";r=4`, "5", ""},
		{`"plan": {"of": "{http.request.header.Plan}", "reject": 403, "plans": {"p": {"max_events": 10, "window": "1m"}}}`, `"all";q=5;w=60`, `"all";r=4;t=`, "5", "0.083"},
	} {
		h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"on_store_error": "local", "instances": 2,
			"headers": ["draft-10", "x-ratelimit", "spring"], "rate_limits": {"all": {`+c.limit+`}}}`)
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Plan", "p")
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		got := w.Header()
		for name, want := range map[string]string{
			"Ratelimit-Policy": c.policy, "X-Ratelimit-Limit": c.most, "X-Ratelimit-Burst-Capacity": c.most, "X-Ratelimit-Replenish-Rate": c.rate,
		} {
			if values := got.Values(name); strings.Join(values, "|") != want {
				t.Errorf("%s: %s: %q, want %q", c.limit, name, values, want)
			}
		}
		value := ""
		for _, name := range []string{"RateLimit", "Ratelimit"} {
			value += strings.Join(got[name], "")
		}
		if !strings.HasPrefix(value, c.left) {
			t.Errorf("%s: RateLimit: %s, want %s", c.limit, value, c.left)
		}
	}
}
