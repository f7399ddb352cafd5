package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestPlans: the plan of a request sets its limit. A request without a known plan gets the default,
// or the limit of the zone, or is rejected.
func TestPlans(t *testing.T) {
	const plans = `"of": "{http.vars.plan}", "plans": {
		"free": {"max_events": 1, "window": "1h"},
		"pro": {"algorithm": "token_bucket", "max_events": 1, "window": "1h", "burst": 3},
		"own": {"max_events": "{http.vars.quota} 2", "window": "1h"},
		"staff": {"unlimited": true}
	}`
	for _, zone := range []struct{ name, options, noPlan string }{
		{"default", `"plan": {` + plans + `, "default": "free"}`, "200 429"},
		{"unlimited by default", `"plan": {` + plans + `, "default": "staff"}`, "200 200 200"},
		{"rejecting", `"plan": {` + plans + `, "default": "reject 401"}`, "401"},
		{"limit of the zone", `"max_events": 2, "window": "1h", "plan": {` + plans + `}`, "200 200 429"},
	} {
		h := caddytest.Load(t, fmt.Sprintf(`{"rate_limits": {%q: {"key": "{http.request.header.User}", %s}}}`, "plans "+zone.name, zone.options))
		for _, c := range []struct{ header, want string }{
			{"User a Plan free", "200 429"},
			{"User b Plan pro", "200 200 200 429"},
			{"User c Plan own", "200 200 429"},
			{"User d Plan own Quota 1", "200 429"},
			{"User e Plan own Quota x", "403"},
			{"User f Plan staff", "200 200 200 200 200"},
			{"User g", zone.noPlan},
			{"User h Plan FREE", zone.noPlan},
		} {
			if got := caddytest.Statuses(t, h, strings.Count(c.want, " ")+1, strings.Fields(c.header)...); got != c.want {
				t.Errorf("%s: %s: got %s, want %s", zone.name, c.header, got, c.want)
			}
		}
	}
}

// TestPlansInherit: a plan has the options of the zone that it does not set, as TestOver in config has it, and both are told.
func TestPlansInherit(t *testing.T) {
	ctx := caddytest.Config(t)
	caddytest.LoadInto(t, ctx, `{"rate_limits": {"base": {
		"algorithm": "token_bucket", "max_events": 5, "window": "1m", "burst": 20, "refill": "interval", "max_wait": "1s",
		"plan": {"of": "{http.vars.plan}", "plans": {
			"more": {"max_events": 50}, "log": {"algorithm": "sliding_window_log"}, "slots": {"algorithm": "concurrency", "max_events": 2}
		}}
	}}}`)
	caddytest.Run(t, ctx)
	const want = "token_bucket 5/1m interval burst 20 and plans of {http.vars.plan}, " +
		"log sliding_window_log 5/1m, more token_bucket 50/1m interval burst 20, slots concurrency 2"
	if got := caddytest.Admin(t, http.MethodGet, "zones?zone=base", ""); !strings.Contains(got, `"limit": "`+want+`"`) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestPlansByPathAndHost: plans are found however a client spells a path or a host, so that no
// spelling gets the default. The names of plans may be spelled in any way, too.
func TestPlansByPathAndHost(t *testing.T) {
	for _, c := range []struct{ of, name string }{
		{"{http.request.uri.path}", "/login"},
		{"{http.request.uri.path}", "/Login"},
		{"{http.request.host}", "a.test"},
		{"{http.request.host}", "A.test"},
		{"{http.request.method} {http.request.uri.path}", "GET /login"},
		{"{http.request.method} {http.request.host}{http.request.uri.path}", "GET A.test/Login"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"plans": {"plan": {
			"of": "`+c.of+`", "plans": {"`+c.name+`": {"max_events": 0, "window": "1h"}, "free": {"unlimited": true}}, "default": "free"
		}}}}`)
		for _, target := range []string{"/login", "/LOGIN", "//login", "/%6cogin"} {
			for _, host := range []string{"a.test", "A.TEST", "a.test."} {
				if status := caddytest.Status(h, caddytest.RequestTo(host, target)); status != http.StatusTooManyRequests {
					t.Errorf("plan %s, %q: %s%s: got %d, want 429", c.of, c.name, host, target, status)
				}
			}
		}
		caddytest.CleanUp(t, h)
	}
	_, err := caddytest.Config(t).LoadModuleByID("http.handlers.rate_limit", []byte(`{"rate_limits": {"plans": {"plan": {
		"of": "{http.request.uri.path}", "plans": {"/Login": {"unlimited": true}, "/login": {"unlimited": true}}, "default": "/login"}}}}`))
	if err == nil || !strings.Contains(err.Error(), `plan "/login"`) {
		t.Errorf("two plans with the same normalized name: error %v", err)
	}
}

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
