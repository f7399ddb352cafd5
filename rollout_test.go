package caddyratelimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestDryRun: a dry run refuses nothing, the other zones decide without it, and slots that it
// lends for a request that they refuse come back.
func TestDryRun(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"dry": {"max_events": 1, "window": "1h", "dry_run": true},
		"dry slots": {"algorithm": "concurrency", "max_events": 2, "dry_run": true},
		"dry doors": {"max_events": "{http.vars.quota}", "window": "1h", "dry_run": true, "block": [{"path": ["/"]}]},
		"firm": {"max_events": 3, "window": "1h"}
	}}`)
	if got := caddytest.Statuses(t, h, 6); got != "200 200 200 429 429 429" {
		t.Errorf("got %s", got)
	}
	_, header := caddytest.Ask(t, h, "/")
	if got := header.Get("RateLimit-Policy"); got != `"firm";q=3;w=3600` {
		t.Errorf("RateLimit-Policy: %s", got)
	}
	lone := caddytest.Load(t, `{"rate_limits": {"dry slots": {"algorithm": "concurrency", "max_events": 2, "dry_run": true}}}`)
	if got := caddytest.Statuses(t, lone, 3); got != "200 200 200" {
		t.Errorf("a dry run alone: %s", got)
	}
	for i := range 3 {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := lone.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if got := caddytest.Replaced(r, "{http.rate_limit.exceeded.name}"); got != "" {
			t.Errorf("request %d: zone %q is exceeded, though nobody holds its slot", i+1, got)
		}
	}
}

// TestEnforce: a share of the keys is enforced, always the same keys, and never fewer when the
// share grows.
func TestEnforce(t *testing.T) {
	const keys = 2000
	refused := make(map[int]map[int]bool) // by percent
	for _, percent := range []int{0, 10, 50, 100} {
		h := caddytest.Load(t, fmt.Sprintf(`{"rate_limits": {"rollout": {
			"key": "{http.request.header.User}", "max_events": 0, "window": "1h", "enforce": %d}}}`, percent))
		refused[percent] = make(map[int]bool)
		for user := range keys {
			for range 2 {
				status, _ := caddytest.Ask(t, h, "/", "User", fmt.Sprint("user-", user))
				if before, asked := refused[percent][user]; asked && before != (status == 429) {
					t.Fatalf("enforce %d: user %d is refused now and then", percent, user)
				}
				refused[percent][user] = status == 429
			}
		}
		caddytest.CleanUp(t, h)
	}
	count := func(percent int) (n int) {
		for _, yes := range refused[percent] {
			if yes {
				n++
			}
		}
		return n
	}
	if n := count(0); n != 0 {
		t.Errorf("enforce 0: %d refused", n)
	}
	if n := count(100); n != keys {
		t.Errorf("enforce 100: %d of %d refused", n, keys)
	}
	for _, percent := range []int{10, 50} {
		// Five standard deviations of a binomial distribution are 3.4 % and 5.6 %.
		if share := float64(count(percent)) / keys * 100; share < float64(percent)-6 || share > float64(percent)+6 {
			t.Errorf("enforce %d: %.1f %% refused", percent, share)
		}
	}
	for user, yes := range refused[10] {
		if yes && !refused[50][user] {
			t.Errorf("user %d is refused at 10 percent and not at 50", user)
		}
	}
	// The choice must never change, because otherwise a fleet that is being updated would not
	// agree.
	h := caddytest.Load(t, `{"rate_limits": {"api": {"key": "{http.request.header.User}", "max_events": 0, "window": "1h", "enforce": 50}}}`)
	var got []string
	for _, key := range []string{"", "a", "b", "c", "203.0.113.7", "2001:db8::/64"} {
		got = append(got, caddytest.Statuses(t, h, 1, "User", key))
	}
	if got, want := strings.Join(got, " "), "200 429 429 429 200 429"; got != want {
		t.Errorf("chosen otherwise than ever: got %s, want %s", got, want)
	}
}

// TestReserve: the last slots are for the requests that match.
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
				t.Errorf("shed without Retry-After: %v", w.Header())
			}
		}()
		return <-entered
	}
	for i := range 10 {
		if inside := enter("/"); inside != (i < 7) { // 2.5 reserved slots are 3
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
		t.Errorf("after: %d %v", status, header)
	}
}

// TestReserveInPlans: a plan without slots refuses with 429, because only the client itself has
// used up its limit.
func TestReserveInPlans(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"slots": {
		"algorithm": "concurrency", "max_events": 0, "reserve": {"percent": 25, "match": [{"path": ["/pay"]}]},
		"plan": {"of": "{http.vars.plan}", "plans": {"fleet": {}, "rate": {"algorithm": "token_bucket", "max_events": 1, "window": "1h"}}, "default": "fleet"}
	}}}`)
	if got := caddytest.Statuses(t, h, 1, "Plan", "fleet"); got != "503" {
		t.Errorf("no slot: %s", got)
	}
	if got := caddytest.Statuses(t, h, 2, "Plan", "rate"); got != "200 429" {
		t.Errorf("too often: %s", got)
	}
}
