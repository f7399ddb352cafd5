package zone_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestLimitsOfRequests: placeholders set the limit and the cost of a request. A value that is not
// valid is rejected, and does not fall back to the default.
func TestLimitsOfRequests(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"limits": {
			"key": "{http.request.header.User}", "algorithm": "token_bucket",
			"max_events": "{http.vars.quota} 2", "window": "1h", "burst": "{http.vars.burst} 2",
			"cost": "{http.vars.cost} 1"
		}
	}}`)
	for _, c := range []struct {
		header string
		want   string
	}{
		{"User a", "200 200 429"},
		{"User b Quota 3 Burst 3", "200 200 200 429"},
		{"User c Quota 0", "429"},
		{"User d Burst 5", "200 200 200 200 200 429"},
		{"User e Cost 2", "200 429"},
		{"User f Cost 0", "200 200 200 200"},
		{"User h Quota many", "403"},
		{"User i Quota -1", "403"},
		{"User j Quota 1.5", "403"},
		{"User k Quota 9999999999999999999999", "403"},
		{"User l Quota 1000000000001", "403"},
		{"User p Burst -1", "403"},
		{"User q Cost -1", "403"},
		{"User r Cost 1000000000001", "403"},
		{"User s Quota " + strings.Repeat("1", 1000), "403"},
	} {
		if got := caddytest.Statuses(t, h, strings.Count(c.want, " ")+1, strings.Fields(c.header)...); got != c.want {
			t.Errorf("%s: got %s, want %s", c.header, got, c.want)
		}
	}
	_, header := caddytest.Ask(t, h, "/", "User", "z", "Quota", "3600", "Burst", "9")
	if got := header.Get("RateLimit-Policy"); got != `"limits";q=9;w=9` {
		t.Errorf("RateLimit-Policy: %s, want q=9 and w=9", got)
	}
}

// TestLimitRaisedByRequest: a key has one state, also if its limit changes from request to request.
func TestLimitRaisedByRequest(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"raised": {"max_events": "{http.vars.quota} 2", "window": "1h"}}}`)
	for i, step := range []struct{ quota, want string }{
		{"2", "200 200 429"}, {"3", "200 429"}, {"2", "429"}, {"5", "200 200 429"},
	} {
		if got := caddytest.Statuses(t, h, strings.Count(step.want, " ")+1, "Quota", step.quota); got != step.want {
			t.Errorf("step %d, quota %s: got %s, want %s", i, step.quota, got, step.want)
		}
	}
}

// TestInvalidLimitIsLoggedOnce: clients cannot fill the log with limits that are not valid. The line
// does not show the value.
func TestInvalidLimitIsLoggedOnce(t *testing.T) {
	ctx, all := caddytest.Logged(t)
	h := caddytest.LoadInto(t, ctx, `{"log": "off", "rate_limits": {"logged": {"max_events": "{http.vars.quota} 10", "window": "1h"}}}`)
	for range 1000 {
		if status, _ := caddytest.Ask(t, h, "/", "Quota", "s3cr3t"); status != 403 {
			t.Fatalf("status %d, want 403", status)
		}
	}
	logs := all.FilterLevelExact(zapcore.WarnLevel)
	if logs.Len() != 1 {
		t.Fatalf("%d lines for 1000 requests, want 1", logs.Len())
	}
	if line := fmt.Sprint(logs.All()[0].ContextMap()); strings.Contains(line, "s3cr3t") || !strings.Contains(line, "{http.vars.quota}") {
		t.Errorf("the line has %s, want the placeholder without its value", line)
	}
}
