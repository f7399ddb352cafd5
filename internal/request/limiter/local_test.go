package limiter_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

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
		if status, _ := caddytest.Ask(t, h, "/", "Cost", c.cost); status != c.want {
			t.Errorf("request %d of cost %s: %d, want %d", i+1, c.cost, status, c.want)
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
		{`"plan": {"of": "{http.request.header.Plan}", "default": "reject 403", "plans": {"p": {"max_events": 10, "window": "1m"}}}`, `"all";q=5;w=60`, `"all";r=4;t=`, "5", "0.083"},
	} {
		h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"on_store_error": "local", "instances": 2,
			"headers": ["draft-10", "x-ratelimit", "spring"], "rate_limits": {"all": {`+c.limit+`}}}`)
		_, got := caddytest.Ask(t, h, "/", "Plan", "p")
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
