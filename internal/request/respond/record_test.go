package respond_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestTwoHandlers: the response describes the zones of two handlers as if one handler had them.
func TestTwoHandlers(t *testing.T) {
	ctx := caddytest.Config(t)
	shared := `"shared": {"max_events": 50, "window": "1m"}`
	site := caddytest.LoadInto(t, ctx, `{"headers": ["draft-10", "x-ratelimit"], "rate_limits": {"site": {"max_events": 4, "window": "1m"}, `+shared+`}}`)
	route := caddytest.LoadInto(t, ctx, `{"rate_limits": {"route": {"max_events": 3, "window": "1m"}, `+shared+`}}`)
	const policies = `"shared";q=50;w=60, "site";q=4;w=60, "route";q=3;w=60`
	// Items come in the order of the handlers, behind the one that binds most.
	for i, want := range []struct{ limit, remaining string }{
		{`"route";r=2;t=60, "shared";r=48;t=60, "site";r=3;t=60`, "2"},
		{`"route";r=1;t=60, "shared";r=46;t=60, "site";r=2;t=60`, "1"},
		{`"route";r=0;t=60, "shared";r=44;t=60, "site";r=1;t=60`, "0"},
		{`"route";r=0;t=60, "shared";r=43;t=60, "site";r=0;t=60`, "0"},
	} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := caddytest.ServeTwo(site, route, w, r); err != nil {
			t.Fatal(err)
		}
		if (w.Code == http.StatusTooManyRequests) != (i == 3) {
			t.Errorf("request %d: status %d, want that the last request is refused", i+1, w.Code)
		}
		for name, value := range map[string]string{"RateLimit": want.limit, "RateLimit-Policy": policies, "X-RateLimit-Remaining": want.remaining} {
			if got := w.Header().Values(name); !slices.Equal(got, []string{value}) {
				t.Errorf("request %d: %s: %q, want %q", i+1, name, got, value)
			}
		}
		if got := caddytest.Replaced(r, "{http.rate_limit.zone} {http.rate_limit.remaining}"); got != "route "+want.remaining {
			t.Errorf("request %d: placeholders show %q, want zone route and %s", i+1, got, want.remaining)
		}
	}
	// Now the first handler refuses.
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	if err := caddytest.ServeTwo(site, route, w, r); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusTooManyRequests || !strings.HasPrefix(w.Header().Get("RateLimit"), `"site";r=0`) || w.Header().Get("X-RateLimit-Retry-After") != w.Header().Get("Retry-After") {
		t.Errorf("status %d, header %v, want a refusal by zone site", w.Code, w.Header())
	}
}

// TestItemsOfManyZones: RateLimit has ten zones at most, first the one that binds the client most, and
// no dry run.
func TestItemsOfManyZones(t *testing.T) {
	config := `{"rate_limits": {"dry": {"max_events": 1, "window": "1h", "enforce": 0}, "z": {"max_events": 2, "window": "1h"}`
	for i := range 14 {
		config += fmt.Sprintf(`, "a%02d": {"max_events": 50, "window": "1h"}`, i)
	}
	h := caddytest.LoadInto(t, caddytest.Config(t), config+"}}")
	_, header := caddytest.Serve(t, h, "203.0.113.7:1")
	items := strings.Split(header.Get("RateLimit"), ", ")
	if len(items) != 10 || items[0] != `"z";r=1;t=3600` || items[1] != `"a00";r=49;t=3600` || strings.Contains(header.Get("RateLimit"), "dry") {
		t.Errorf("RateLimit: %q", items)
	}
}

// TestDryRunsAmongHandlers: placeholders and headers describe the limits that are enforced,
// whichever handler has them. Placeholders describe a dry run if there is no other limit.
func TestDryRunsAmongHandlers(t *testing.T) {
	ctx := caddytest.Config(t)
	dry := caddytest.LoadInto(t, ctx, `{"rate_limits": {"dry": {"max_events": 1, "window": "1h", "enforce": 0}}}`)
	enforced := caddytest.LoadInto(t, ctx, `{"rate_limits": {"enforced": {"max_events": 3, "window": "1h"}}}`)
	text := "{http.rate_limit.allowed} {http.rate_limit.zone} {http.rate_limit.remaining} {http.vars.rate_limit} <{http.rate_limit.exceeded.name}> {http.rate_limit.exceeded.dry}"
	for i, c := range []struct {
		first, second   caddytest.Handler
		want, rateLimit string
	}{
		{dry, nil, "true dry 0 allowed <> false", ""},
		{dry, nil, "true dry 0 dry_run <dry> true", ""},
		{dry, enforced, "true enforced 2 allowed <dry> true", `"enforced";r=2;t=3600`},
		{enforced, dry, "true enforced 1 allowed <dry> true", `"enforced";r=1;t=3600`},
		{enforced, nil, "true enforced 0 allowed <> false", `"enforced";r=0;t=3600`},
		{dry, enforced, "false enforced 0 limited <enforced> true", `"enforced";r=0;t=3600`},
	} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		var err error
		if c.second == nil {
			err = c.first.ServeHTTP(w, r, caddytest.Passing)
		} else {
			err = caddytest.ServeTwo(c.first, c.second, w, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := caddytest.Replaced(r, text); got != c.want {
			t.Errorf("request %d: got %q, want %q", i+1, got, c.want)
		}
		if got := w.Header().Get("RateLimit"); got != c.rateLimit {
			t.Errorf("request %d: RateLimit: %q, want %q", i+1, got, c.rateLimit)
		}
	}
}

// TestPlaceholders: placeholders show the decision on the request. One that does not exist stays
// unknown.
func TestPlaceholders(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"shown": {"max_events": 2, "window": "1h", "cost": 2}}}`)
	text := "{http.rate_limit.allowed} {http.rate_limit.zone} {http.rate_limit.limit} {http.rate_limit.remaining} " +
		"{http.rate_limit.reset} {http.rate_limit.retry_after} {http.rate_limit.cost} <{http.rate_limit.plan}>"
	for _, want := range []struct{ all, exceeded string }{
		{"true shown 2 0 3600 0 2 <>", "unknown"},
		{"false shown 2 0 3600 3600 2 <>", "shown"},
	} {
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
			t.Fatal(err)
		}
		if got := caddytest.Replaced(r, text); got != want.all {
			t.Errorf("got %q, want %q", got, want.all)
		}
		repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
		if got := repl.ReplaceAll("{http.rate_limit.exceeded.name}", "unknown"); got != want.exceeded {
			t.Errorf("exceeded.name: %q, want %q", got, want.exceeded)
		}
		if value, known := repl.Get("http.rate_limit.other"); known {
			t.Errorf("{http.rate_limit.other} is %v, want it unknown", value)
		}
	}
}
