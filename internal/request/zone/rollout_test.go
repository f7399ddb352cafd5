package zone_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestDryRun: a dry run refuses nothing, and does not change what other zones decide. A slot that it
// lends to a request comes back, also if another zone refuses the request.
func TestDryRun(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"dry": {"max_events": 1, "window": "1h", "enforce": 0},
		"dry slots": {"algorithm": "concurrency", "max_events": 2, "enforce": 0},
		"dry block": {"max_events": "{http.vars.quota}", "window": "1h", "enforce": 0, "block": [{"path": ["/"]}]},
		"enforced": {"max_events": 3, "window": "1h"}
	}}`)
	if got := caddytest.Statuses(t, h, 6); got != "200 200 200 429 429 429" {
		t.Errorf("got %s, want that only zone enforced refuses", got)
	}
	_, header := caddytest.Ask(t, h, "/")
	if got := header.Get("RateLimit-Policy"); got != `"enforced";q=3;w=3600` {
		t.Errorf("RateLimit-Policy: %s, want only zone enforced", got)
	}
	alone := caddytest.Load(t, `{"rate_limits": {"dry slots": {"algorithm": "concurrency", "max_events": 2, "enforce": 0}}}`)
	if got := caddytest.Statuses(t, alone, 3); got != "200 200 200" {
		t.Errorf("a dry run alone: %s, want 200 three times", got)
	}
	for i := range 3 {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := alone.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if got := caddytest.Replaced(r, "{http.rate_limit.exceeded.name}"); got != "" {
			t.Errorf("request %d: zone %q is exceeded, although no slot is in use", i+1, got)
		}
	}
}

// TestEnforce: a zone is enforced for a share of the keys, which are always the same. When the share
// grows, no key leaves it.
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
				if before, known := refused[percent][user]; known && before != (status == 429) {
					t.Fatalf("enforce %d: user %d is refused once and not the other time", percent, user)
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
		t.Errorf("enforce 0: %d keys are refused", n)
	}
	if n := count(100); n != keys {
		t.Errorf("enforce 100: %d of %d keys are refused", n, keys)
	}
	for _, percent := range []int{10, 50} {
		// Five standard deviations of a binomial distribution are 3.4 % and 5.6 %.
		if share := float64(count(percent)) / keys * 100; share < float64(percent)-6 || share > float64(percent)+6 {
			t.Errorf("enforce %d: %.1f %% of the keys are refused", percent, share)
		}
	}
	for user, yes := range refused[10] {
		if yes && !refused[50][user] {
			t.Errorf("user %d is refused at 10 percent and not at 50", user)
		}
	}
	// The choice must be the same in all releases, because a fleet may be in the middle of an update.
	h := caddytest.Load(t, `{"rate_limits": {"api": {"key": "{http.request.header.User}", "max_events": 0, "window": "1h", "enforce": 50}}}`)
	var got []string
	for _, key := range []string{"", "a", "b", "c", "203.0.113.7", "2001:db8::/64"} {
		got = append(got, caddytest.Statuses(t, h, 1, "User", key))
	}
	if got, want := strings.Join(got, " "), "200 429 429 429 200 429"; got != want {
		t.Errorf("the choice has changed: got %s, want %s", got, want)
	}
}

// TestCopyIsItsOwn: a copy of a zone makes nothing that requests to the zone read.
func TestCopyIsItsOwn(t *testing.T) {
	z, err := zone.New(&config.Zone{
		Limit:  config.Limit{MaxEvents: &config.Amount{Number: 5}, Window: config.Window{Duration: caddy.Duration(time.Hour)}},
		Charge: &config.Charge{Status: []string{"401"}},
	}, zone.Place{Name: "z"}, new(stats.Counters))
	if err != nil {
		t.Fatal(err)
	}
	other, err := z.Copy()
	if err != nil || other.Charge == z.Charge || other.Charge.Matcher == nil || z.Charge.Matcher == nil {
		t.Errorf("%v: the copy has the charge of the zone, or none", err)
	}
}
