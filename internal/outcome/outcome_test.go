package outcome_test

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap/zapcore"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// policies has a zone for each policy, which requests to a path of its own meet, and one that all
// requests meet.
const policies = `{"log": "all", "log_key": true, "rate_limits": {
	"a all": {"max_events": 100, "window": "1h"},
	"block": {"match": [{"path": ["/block"]}], "max_events": 9, "window": "1h", "block": [{"header": {"Bad": ["*"]}}]},
	"exempt": {"match": [{"path": ["/exempt"]}], "max_events": 0, "window": "1h", "exempt": [{"path": ["/exempt"]}]},
	"key": {"match": [{"path": ["/key"]}], "key": "{http.request.header.Key}", "max_events": 9, "window": "1h", "missing_key": "reject"},
	"skip": {"match": [{"path": ["/skip"]}], "key": "{http.request.header.Key}", "max_events": 0, "window": "1h", "missing_key": "skip"},
	"quota": {"match": [{"path": ["/quota"]}], "max_events": "{http.vars.quota}", "window": "1h"},
	"plan": {"match": [{"path": ["/plan"]}], "plan": {"of": "{http.vars.plan}", "default": "reject 402", "plans": {
		"free": {"max_events": 1, "window": "1h"}, "staff": {"unlimited": true}}}},
	"dry": {"match": [{"path": ["/dry"]}], "max_events": 1, "window": "1h", "enforce": 0, "block": [{"header": {"Bad": ["*"]}}]}
}}`

// TestOutcomesOfPolicies: each outcome has its status, placeholders, metrics, log line and event.
func TestOutcomesOfPolicies(t *testing.T) {
	ctx, logs := caddytest.Logged(t)
	h := caddytest.LoadInto(t, ctx, policies)
	exceeded, rejected := caddytest.Listen(t, ctx, "rate_limit_exceeded"), caddytest.Listen(t, ctx, "rate_limit_rejected")
	text := "{http.rate_limit.allowed} {http.rate_limit.zone} {http.rate_limit.plan} {http.rate_limit.remaining}|{http.rate_limit.exceeded.name}"
	want := map[string]float64{}
	for _, c := range []struct {
		path, header string
		status       int
		placeholders string
		outcomes     string // in zone "a all", and in the zone of the path
		line         string
	}{
		{"/block", "", 200, "true block  8|?", "allowed allowed", ""},
		{"/block", "Bad", 403, "false block  |block", "not_charged rejected", "request rejected: the request is blocked"},
		{"/exempt", "", 200, "true a all  98|?", "allowed exempt", ""},
		{"/key", "", 401, "false key  |key", "not_charged rejected", "request rejected: the request has no key"},
		{"/key", "Key", 200, "true key  8|?", "allowed allowed", ""},
		{"/skip", "", 200, "true a all  96|?", "allowed exempt", ""},
		{"/quota", "", 403, "false quota  |quota", "not_charged rejected", "request rejected: the request has no valid limit"},
		{"/quota", "quota=2", 200, "true quota  1|?", "allowed allowed", ""},
		{"/plan", "", 402, "false plan  |plan", "not_charged rejected", "request rejected: the request has no plan"},
		{"/plan", "plan=free", 200, "true plan free 0|?", "allowed allowed", ""},
		{"/plan", "plan=free", 429, "false plan free 0|plan", "not_charged limited", "rate limit exceeded"},
		{"/plan", "plan=staff", 200, "true a all  93|?", "allowed exempt", ""},
		{"/dry", "", 200, "true a all  92|", "allowed allowed", ""},
		{"/dry", "", 200, "true a all  91|dry", "allowed dry_run", "rate limit exceeded (dry run)"},
		{"/dry", "Bad", 200, "true a all  90|dry", "allowed dry_run", "request rejected: the request is blocked (dry run)"},
	} {
		name := c.path + " " + c.header
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.URL.Path = c.path
		if field, value, isVar := strings.Cut(c.header, "="); isVar {
			caddyhttp.SetVar(r.Context(), field, value)
		} else if field != "" {
			r.Header.Set(field, "x")
		}
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if got := strings.Replace(repl.ReplaceKnown(text, ""), "{http.rate_limit.exceeded.name}", "?", 1); got != c.placeholders {
			t.Errorf("%s: placeholders show %q, want %q", name, got, c.placeholders)
		}
		all, own, _ := strings.Cut(c.outcomes, " ")
		want["decisions_total{outcome="+all+",zone=a all}"]++
		want["decisions_total{outcome="+own+",zone="+c.path[1:]+"}"]++
		line := ""
		for _, entry := range logs.TakeAll() {
			if entry.Level == zapcore.WarnLevel {
				continue // the line about limits that are not valid, once a minute
			}
			fields := entry.ContextMap()
			line = entry.Message
			if reason, ok := fields["reason"]; ok {
				line += fmt.Sprint(": ", reason)
			}
			if fields["dry_run"] == true {
				line += " (dry run)"
			}
			if _, ok := fields["key"]; !ok || fields["zone"] != c.path[1:] || fields["remote_ip"] != "203.0.113.7" {
				t.Errorf("%s: the log line has %v", name, fields)
			}
		}
		if line != c.line {
			t.Errorf("%s: logged %q, want %q", name, line, c.line)
		}
	}
	got := caddytest.Scrape(t, ctx)
	maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "decisions_total") })
	if !maps.Equal(got, want) {
		t.Errorf("metrics:\ngot  %v\nwant %v", got, want)
	}
	zones := func(l *caddytest.Listener) (zones []any) {
		for _, e := range l.Events {
			zones = append(zones, e.Data["zone"])
		}
		return zones
	}
	if got := fmt.Sprint(zones(exceeded), zones(rejected)); got != "[plan] [block key quota plan]" {
		t.Errorf("the zones of the events are %s", got)
	}
	if data := rejected.Events[0].Data; data["status"] != 403 || data["reason"] != "the request is blocked" {
		t.Errorf("the event of a blocked request has %v", data)
	}
}
