package caddyratelimit_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestBans: who keeps asking is refused without being counted, and told for how long.
func TestBans(t *testing.T) {
	h := caddytest.Load(t, `{"rate_limits": {
		"one": {"key": "{http.request.header.User}", "algorithm": "token_bucket", "max_events": 2, "window": "1m",
			"ban": {"duration": "1h", "after": 3, "window": "10m"}},
		"all": {"max_events": 100, "window": "1h"}
	}}`)
	if got, want := caddytest.Statuses(t, h, 5, "User", "a"), "200 200 429 429 429"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	status, header := caddytest.Ask(t, h, "/", "User", "a")
	if status != 429 || header.Get("Retry-After") != "3600" || header.Get("RateLimit") != `"one";r=0;t=3600` {
		t.Errorf("banned: %d %v", status, header)
	}
	if _, header = caddytest.Ask(t, h, "/", "User", "b"); header.Get("RateLimit") != `"one";r=1;t=30` {
		t.Errorf("somebody else: %v", header)
	}
}

// TestOverrides: keys with settings of their own, and what clients are told of them.
func TestOverrides(t *testing.T) {
	ctx, kept := caddytest.Config(t), caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.LoadInto(t, ctx, `{`+kept.Option()+`"rate_limits": {
		"one": {"key": "{http.request.header.User}", "max_events": 2, "window": "1h", "overrides": true, "max_wait": "1h",
			"charge_on_response": {"status_code": [401]}},
		"all": {"key": "{http.request.header.Fleet}", "max_events": 3, "window": "1h", "overrides": true},
		"slots": {"key": "{http.request.header.User}", "algorithm": "concurrency", "max_events": 1, "overrides": true},
		"dry": {"key": "{http.request.header.User}", "max_events": 2, "window": "1h", "overrides": true, "dry_run": true}
	}}`)
	caddytest.Run(t, ctx)
	set := func(zone, what, key, body string) {
		t.Helper()
		caddytest.Admin(t, http.MethodPut, "zones/"+zone+"/key/"+what+"?key="+key, body)
	}
	for _, zone := range []string{"one", "slots", "dry"} {
		set(zone, "override", "ours", `{"exempt": true}`)
		set(zone, "ban", "theirs", `{"for": "20m"}`)
	}
	set("all", "override", "", `{"exempt": true}`)

	for range 9 {
		status, header := caddytest.Ask(t, h, "/", "User", "ours")
		if status != 200 || header.Get("RateLimit") != "" || header.Get("RateLimit-Policy") != "" {
			t.Fatalf("exempt from all zones: %d %v", status, header)
		}
	}
	if got, want := caddytest.Statuses(t, h, 5, "User", "ours", "Fleet", "f"), "200 200 200 429 429"; got != want {
		t.Errorf("exempt from one zone: %s, want %s", got, want)
	}
	_, header := caddytest.Ask(t, h, "/", "User", "ours", "Fleet", "g")
	if got, want := header.Get("RateLimit-Policy"), `"all";q=3;w=3600`; got != want {
		t.Errorf("exempt from the others: %s, want %s", got, want)
	}

	// Nobody who is banned is held.
	status, header := caddytest.Ask(t, h, "/", "User", "theirs", "Fleet", "h")
	if status != 429 || header.Get("Retry-After") != "1200" {
		t.Errorf("banned: %d %v", status, header)
	}
	if got, want := caddytest.Statuses(t, h, 4, "User", "ours", "Fleet", "h"), "200 200 200 429"; got != want {
		t.Errorf("what refuses in one zone is not counted in others: %s, want %s", got, want)
	}

	set("all", "override", "i", `{"limit": 5, "note": "pro"}`)
	if got, want := caddytest.Statuses(t, h, 6, "User", "ours", "Fleet", "i"), "200 200 200 200 200 429"; got != want {
		t.Errorf("5 instead of 3: %s", got)
	}
	if _, header := caddytest.Ask(t, h, "/", "User", "ours", "Fleet", "i"); header.Get("RateLimit-Policy") != `"all";q=5` {
		t.Errorf("the policy of a limit of one's own: %v", header)
	}
	caddytest.CleanUp(t, h)
	if !kept.Closed() {
		t.Error("requests of exempt keys still use the store")
	}
}
