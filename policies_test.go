package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

func TestLimitsOfRequests(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"varying": {
			"key": "{http.request.header.User}", "algorithm": "token_bucket",
			"max_events": "{http.vars.quota} 2", "window": "{http.vars.window} 1h", "burst": "{http.vars.burst} 2",
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
		{"User g Quota 1000 Burst 1 Window 1ms", "200"},
		{"User h Quota many", "403"},
		{"User i Quota -1", "403"},
		{"User j Quota 1.5", "403"},
		{"User k Quota 9999999999999999999999", "403"},
		{"User l Quota 1000000000001", "403"},
		{"User m Window soon", "403"},
		{"User n Window -1s", "403"},
		{"User o Window month", "403"},
		{"User p Burst -1", "403"},
		{"User q Cost -1", "403"},
		{"User r Cost 1000000000001", "403"},
		{"User s Quota " + strings.Repeat("1", 1000), "403"},
	} {
		if got := caddytest.Statuses(t, h, strings.Count(c.want, " ")+1, strings.Fields(c.header)...); got != c.want {
			t.Errorf("%s: got %s, want %s", c.header, got, c.want)
		}
	}
	_, header := caddytest.Ask(t, h, "/", "User", "z", "Quota", "7", "Burst", "9", "Window", "7s")
	if got := header.Get("RateLimit-Policy"); got != `"varying";q=9;w=9` {
		t.Errorf("the policy is that of another limit: %s", got)
	}
}

// TestLimitRaisedByRequest: a key has one state, even if its limit changes from request to
// request.
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

func TestNoFallback(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"strict": {"max_events": "{http.vars.quota}", "window": "1h", "invalid_limit": 400}}}`)
	if got := caddytest.Statuses(t, h, 1); got != "400" {
		t.Errorf("without a value: %s, want 400", got)
	}
	if got := caddytest.Statuses(t, h, 2, "Quota", "1"); got != "200 429" {
		t.Errorf("with a value: %s", got)
	}
}

// TestTimezoneOfRequests: each client's day begins at its own midnight.
func TestTimezoneOfRequests(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"day": {
		"key": "{http.request.header.User}", "algorithm": "fixed_window", "max_events": 1, "window": "day", "timezone": "{http.vars.zone} Europe/Paris"
	}}}`)
	wait := func(user, zone string) int {
		caddytest.Ask(t, h, "/", "User", user, "Zone", zone)
		status, header := caddytest.Ask(t, h, "/", "User", user, "Zone", zone)
		var seconds int
		if _, err := fmt.Sscan(header.Get("Retry-After"), &seconds); err != nil || status != 429 {
			t.Fatalf("%s: status %d, Retry-After: %v", zone, status, err)
		}
		return seconds
	}
	const hour = 3600
	tokyo, honolulu := wait("a", "Asia/Tokyo"), wait("b", "Pacific/Honolulu")
	// It is 19 hours later in Tokyo.
	if apart := (tokyo - honolulu + 48*hour) % (24 * hour); apart < 5*hour-60 || apart > 5*hour+60 {
		t.Errorf("midnight in Tokyo in %d s, in Honolulu in %d s", tokyo, honolulu)
	}
	for _, zone := range []string{"Atlantis", "../../etc/passwd", strings.Repeat("x", 1000)} {
		if got := caddytest.Statuses(t, h, 1, "User", "c", "Zone", zone); got != "403" {
			t.Errorf("zone %.20s: %s, want 403", zone, got)
		}
	}
}

// TestInvalidLimitIsLoggedSeldom: clients cannot fill the log.
func TestInvalidLimitIsLoggedSeldom(t *testing.T) {
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
		t.Errorf("the line says %s", line)
	}
}

func TestPlans(t *testing.T) {
	const plans = `"of": "{http.vars.plan}", "plans": {
		"free": {"max_events": 1, "window": "1h"},
		"pro": {"algorithm": "token_bucket", "max_events": 1, "window": "1h", "burst": 3},
		"own": {"max_events": "{http.vars.quota} 2", "window": "1h"},
		"staff": {"unlimited": true}
	}`
	for _, zone := range []struct{ name, more, none string }{
		{"default", `"plan": {` + plans + `, "default": "free"}`, "200 429"},
		{"unlimited by default", `"plan": {` + plans + `, "default": "staff"}`, "200 200 200"},
		{"rejecting", `"plan": {` + plans + `, "reject": 401}`, "401"},
		{"own limit", `"max_events": 2, "window": "1h", "plan": {` + plans + `}`, "200 200 429"},
	} {
		h := caddytest.Load(t, fmt.Sprintf(`{"rate_limits": {%q: {"key": "{http.request.header.User}", %s}}}`, "plans "+zone.name, zone.more))
		for _, c := range []struct{ header, want string }{
			{"User a Plan free", "200 429"},
			{"User b Plan pro", "200 200 200 429"},
			{"User c Plan own", "200 200 429"},
			{"User d Plan own Quota 1", "200 429"},
			{"User e Plan own Quota x", "403"},
			{"User f Plan staff", "200 200 200 200 200"},
			{"User g", zone.none},
			{"User h Plan FREE", zone.none},
		} {
			if got := caddytest.Statuses(t, h, strings.Count(c.want, " ")+1, strings.Fields(c.header)...); got != c.want {
				t.Errorf("%s: %s: got %s, want %s", zone.name, c.header, got, c.want)
			}
		}
	}
}

// TestPlanTakesOver: options that a plan does not have are those of the zone, except for options
// of another algorithm.
func TestPlanTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := caddytest.Config(t)
		h := caddytest.LoadInto(t, ctx, `{`+caddytest.KeepMemory(t, memorystore.Options{}).Option()+`"rate_limits": {"base": {
			"algorithm": "token_bucket", "max_events": 5, "window": "1m", "burst": 20, "refill": "interval", "max_wait": "1s",
			"plan": {"of": "{http.vars.plan}", "plans": {
				"more": {"max_events": 50}, "log": {"algorithm": "sliding_window_log"}, "slots": {"algorithm": "concurrency", "max_events": 2}
			}}
		}}}`)
		caddytest.Run(t, ctx)
		var shown struct{ Limit string }
		if err := json.Unmarshal([]byte(caddytest.Admin(t, http.MethodGet, "zones/base", "")), &shown); err != nil {
			t.Fatal(err)
		}
		if got, want := shown.Limit, "token_bucket 5/1m interval burst 20 and plans of {http.vars.plan}, "+
			"log sliding_window_log 5/1m, more token_bucket 50/1m interval burst 20, slots concurrency 2"; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		began := time.Now()
		if got, want := caddytest.Statuses(t, h, 6, "Plan", "log"), "200 200 200 200 200 429"; got != want {
			t.Errorf("plan log: got %s, want %s", got, want)
		}
		time.Sleep(time.Minute - time.Second/2)
		if status, _ := caddytest.Ask(t, h, "/", "Plan", "log"); status != 200 || time.Since(began) != time.Minute {
			t.Errorf("plan log: status %d after %v, want 200 after 1m, half a second of which it waits", status, time.Since(began))
		}
	})
}

func TestMissingKey(t *testing.T) {
	for _, c := range []struct{ zone, want string }{
		{`"key": "{http.request.header.Api-Key}"`, "200 200 429"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "share"`, "200 200 429"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "skip"`, "200 200 200"},
		{`"key": "{http.request.header.Api-Key}", "missing_key": "reject"`, "401 401 401"},
		{`"key": "key {http.request.header.Api-Key}", "missing_key": "reject", "missing_key_status": 400`, "400 400 400"},
		{`"key": "{http.request.header.Api-Key} {http.request.header.User}", "missing_key": "reject"`, "401 401 401"},
		{`"key": "{http.request.header.Api-Key} {http.request.host}", "missing_key": "reject"`, "200 200 429"},
		{`"key": "{http.request.cookie.session}", "missing_key": "skip"`, "200 200 200"},
	} {
		h := caddytest.Load(t, `{"rate_limits": {"missing": {"max_events": 2, "window": "1h", `+c.zone+`}}}`)
		if got := caddytest.Statuses(t, h, 3); got != c.want {
			t.Errorf("%s: got %s, want %s", c.zone, got, c.want)
		}
		caddytest.CleanUp(t, h)
	}
	// No client can send a value that uses up the limit of requests without one.
	h := caddytest.Load(t, `{"rate_limits": {"imitated": {"max_events": 1, "window": "1h", "key": "{http.request.header.A}{http.request.header.B}"}}}`)
	for _, header := range [][]string{{"A", "0:"}, {"B", "0:"}, {"A", "0:0:"}, {"A", "*"}, nil} {
		if got := caddytest.Statuses(t, h, 1, header...); got != "200" {
			t.Errorf("%q: got %s: its limit was spent by another", header, got)
		}
	}
}

func TestExemptAndBlock(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"doors": {
		"max_events": 0, "window": "1h",
		"exempt": [{"client_ip": {"ranges": ["10.0.0.0/8", "2001:db8::/32"]}}, {"header": {"Internal": ["yes"]}}],
		"block": [{"client_ip": {"ranges": ["10.6.6.0/24"]}}, {"path": ["/admin*"]}], "block_status": 451
	}}}`)
	for _, c := range []struct {
		client, path string
		header       []string
		want         int
	}{
		{"203.0.113.7", "/", nil, 429},
		{"10.1.2.3", "/", nil, 200},
		{"2001:db8::1", "/", nil, 200},
		{"203.0.113.7", "/", []string{"Internal", "yes"}, 200},
		{"203.0.113.7", "/", []string{"Internal", "no"}, 429},
		{"203.0.113.7", "/admin", nil, 451},
		{"10.6.6.6", "/", nil, 451},
		{"10.1.2.3", "/admin/x", []string{"Internal", "yes"}, 451},
		// A proxy may write IPv4 addresses in this way.
		{"::ffff:10.1.2.3", "/", nil, 200},
		{"::ffff:10.6.6.6", "/", nil, 451},
		{"::ffff:203.0.113.7", "/", nil, 429},
		{"::ffff:a:b:c", "/", nil, 429}, // not an IPv4 address
		{"::ffff:nonsense", "/", nil, 429},
	} {
		status, header := caddytest.AskFrom(t, h, c.client, c.path, c.header...)
		if status != c.want {
			t.Errorf("%s %s %v: got %d, want %d", c.client, c.path, c.header, status, c.want)
		}
		if told := header.Get("RateLimit") != ""; told != (status == 429) {
			t.Errorf("%s %s: header %v", c.client, c.path, header)
		}
	}
}

// TestMatchSeesPlainAddresses: a zone for a network matches however a proxy writes the addresses,
// and handlers behind see them as the proxy wrote them.
func TestMatchSeesPlainAddresses(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {"office": {
		"match": [{"client_ip": {"ranges": ["198.51.100.0/24"]}}], "key": "{http.vars.client_ip}", "max_events": 1, "window": "1h"
	}}}`)
	for _, c := range []struct {
		client string
		want   int
	}{
		{"::ffff:198.51.100.7", 200}, {"198.51.100.7", 429}, {"::ffff:203.0.113.7", 200}, {"::ffff:203.0.113.7", 200},
	} {
		if status, _ := caddytest.AskFrom(t, h, c.client, "/"); status != c.want {
			t.Errorf("%s: got %d, want %d", c.client, status, c.want)
		}
	}
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, "::ffff:198.51.100.9")
	seen := ""
	next := caddyhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		seen = caddytest.Replaced(r, "{http.vars.client_ip}")
		return nil
	})
	if err := h.ServeHTTP(w, r, next); err != nil || seen != "::ffff:198.51.100.9" {
		t.Errorf("behind, the address is %q: %v", seen, err)
	}
}
