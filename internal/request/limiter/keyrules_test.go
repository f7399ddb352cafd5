package limiter_test

import (
	"net/http"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// TestBans: a key that is refused too often is banned, and Retry-After is the rest of the ban.
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
	if status != 429 || header.Get("Retry-After") != "3600" || header.Get("RateLimit") != `"one";r=0;t=3600, "all";r=98;t=3600` {
		t.Errorf("banned key: status %d, header %v, want to wait for 3600 s", status, header)
	}
	if _, header = caddytest.Ask(t, h, "/", "User", "b"); header.Get("RateLimit") != `"one";r=1;t=30, "all";r=97;t=3600` {
		t.Errorf("RateLimit of another key: %s, want r=1 and t=30", header.Get("RateLimit"))
	}
}

// TestOverrides: zones leave exempt keys alone, ban keys, and give them limits of their own. The
// header has the limits that hold for the key.
func TestOverrides(t *testing.T) {
	ctx, kept := caddytest.Config(t), caddytest.KeepMemory(t, memorystore.Options{})
	h := caddytest.LoadInto(t, ctx, `{`+kept.Option()+`"rate_limits": {
		"one": {"key": "{http.request.header.User}", "max_events": 2, "window": "1h", "overrides": true, "max_wait": "1h",
			"charge": {"status": ["401"]}},
		"all": {"key": "{http.request.header.Fleet}", "max_events": 3, "window": "1h", "overrides": true},
		"slots": {"key": "{http.request.header.User}", "algorithm": "concurrency", "max_events": 1, "overrides": true},
		"dry": {"key": "{http.request.header.User}", "max_events": 2, "window": "1h", "overrides": true, "enforce": 0}
	}}`)
	caddytest.Run(t, ctx)
	set := func(zone, what, key, body string) {
		t.Helper()
		caddytest.Admin(t, http.MethodPut, "zones/"+zone+"/key/"+what+"?key="+key, body)
	}
	for _, zone := range []string{"one", "slots", "dry"} {
		set(zone, "override", "ours", `{"limit": "exempt"}`)
		set(zone, "ban", "theirs", `{"for": "20m"}`)
	}
	set("all", "override", "", `{"limit": "exempt"}`)

	for range 9 {
		status, header := caddytest.Ask(t, h, "/", "User", "ours")
		if status != 200 || header.Get("RateLimit") != "" || header.Get("RateLimit-Policy") != "" {
			t.Fatalf("key exempt from all zones: status %d, header %v, want no limits", status, header)
		}
	}
	if got, want := caddytest.Statuses(t, h, 5, "User", "ours", "Fleet", "f"), "200 200 200 429 429"; got != want {
		t.Errorf("key exempt from one zone: %s, want %s", got, want)
	}
	_, header := caddytest.Ask(t, h, "/", "User", "ours", "Fleet", "g")
	if got, want := header.Get("RateLimit-Policy"), `"all";q=3;w=3600`; got != want {
		t.Errorf("key exempt from the other zones: RateLimit-Policy %s, want %s", got, want)
	}

	// A request of a banned key does not wait, although the zone has a max_wait.
	status, header := caddytest.Ask(t, h, "/", "User", "theirs", "Fleet", "h")
	if status != 429 || header.Get("Retry-After") != "1200" {
		t.Errorf("banned key: status %d, header %v, want to wait for 1200 s", status, header)
	}
	if got, want := caddytest.Statuses(t, h, 4, "User", "ours", "Fleet", "h"), "200 200 200 429"; got != want {
		t.Errorf("after a request that another zone refused: %s, want %s", got, want)
	}

	set("all", "override", "i", `{"limit": 5, "note": "pro"}`)
	if got, want := caddytest.Statuses(t, h, 6, "User", "ours", "Fleet", "i"), "200 200 200 200 200 429"; got != want {
		t.Errorf("limit 5 instead of 3: got %s, want %s", got, want)
	}
	if _, header := caddytest.Ask(t, h, "/", "User", "ours", "Fleet", "i"); header.Get("RateLimit-Policy") != `"all";q=5;w=3600` {
		t.Errorf("RateLimit-Policy with an override: %s, want q=5 and the window", header.Get("RateLimit-Policy"))
	}
	caddytest.CleanUp(t, h)
	if !kept.Closed() {
		t.Error("the store is not closed: requests of exempt keys still use it")
	}
}
