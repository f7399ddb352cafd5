package limiter_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
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

// TestDryRunsOfRefusedRequests: a request that another zone refuses costs nothing in a dry run, as
// it would cost nothing if the dry run were enforced.
func TestDryRunsOfRefusedRequests(t *testing.T) {
	kept := caddytest.KeepMemory(t, memorystore.Options{})
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_counter", "sliding_window_log"} {
		h := caddytest.Load(t, fmt.Sprintf(`{%[1]s"log": "off", "rate_limits": {
			"a enforced %[2]s": {"max_events": 2, "window": "1h", "match": [{"path": ["/path"]}]},
			"b dry %[2]s": {"algorithm": %[2]q, "max_events": 100, "window": "1h", "enforce": 0}
		}}`, kept.Option(), algorithm))
		for range 5 {
			caddytest.Serve(t, h, "203.0.113.7:1")
		}
		if used := kept.Used(t, "b dry "+algorithm, ""); used != 2 {
			t.Errorf("%s: 5 requests, of which 2 passed, were charged %d in the dry run, want 2", algorithm, used)
		}
	}
}

// slotNames refuses the first request for a slot, and notes by which names slots are asked for and given back.
type slotNames struct{ asked, given []string }

func (s *slotNames) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.asked = append(s.asked, checks[0].LeaseID)
	decisions[0] = algorithms.Decision{Allowed: len(s.asked) > 1, Quota: 1, RetryAfter: 1}
	return nil
}

func (s *slotNames) Adjust(adjustments ...store.Adjustment) {
	for _, a := range adjustments {
		s.given = append(s.given, a.LeaseID)
	}
}

func (s *slotNames) Reset(context.Context, *store.Rule, string) error { return nil }
func (s *slotNames) Close() error                                     { return nil }

// TestWaitingForASlot: each time that a request asks for a slot, it has another name. So what is given back
// late is not the slot that the request has got since.
func TestWaitingForASlot(t *testing.T) {
	s := new(slotNames)
	h := caddytest.Load(t, `{`+caddytest.NewStore(t, func() (store.Store, error) { return s, nil }).Option()+`"rate_limits": {
		"slots": {"algorithm": "concurrency", "max_events": 1, "max_wait": "1h"}
	}}`)
	if status, _ := caddytest.Serve(t, h, "203.0.113.7:1"); status != 200 {
		t.Fatalf("status %d", status)
	}
	if len(s.asked) != 2 || s.asked[0] == s.asked[1] {
		t.Errorf("asked for slots %q", s.asked)
	}
	if len(s.given) != 1 || s.given[0] != s.asked[len(s.asked)-1] {
		t.Errorf("gave %q back of %q", s.given, s.asked)
	}
}

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
