package limiter_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
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

// slotNames refuses the first request for a slot, and notes by which names slots are asked for and given back. Later it may fail.
type slotNames struct {
	asked, given []string
	fails        error
}

func (s *slotNames) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.asked = append(s.asked, checks[0].LeaseID)
	if len(s.asked) > 1 && s.fails != nil {
		return s.fails
	}
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

// TestStoreFailsAfterAWait: a request that waits because it was refused passes if the store does not answer then, and the zone allows that.
func TestStoreFailsAfterAWait(t *testing.T) {
	s := &slotNames{fails: caddytest.ErrNoAnswer}
	h := caddytest.Load(t, `{`+caddytest.NewStore(t, func() (store.Store, error) { return s, nil }).Option()+`"rate_limits": {
		"slots": {"algorithm": "concurrency", "max_events": 1, "max_wait": "1h"}
	}}`)
	if status, header := caddytest.Serve(t, h, "203.0.113.7:1"); status != 200 || header.Get("RateLimit") != "" || len(s.asked) != 2 {
		t.Errorf("status %d, header %v, asked for %d slots", status, header, len(s.asked))
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

// TestZonesDisagreeOnStoreErrors: one zone that denies is enough to deny. The zones that decide
// locally do so together, all or nothing. The header does not describe the other zones.
func TestZonesDisagreeOnStoreErrors(t *testing.T) {
	zone := func(name, policy string, events int) string {
		if policy != "" {
			policy = fmt.Sprintf(`, "on_store_error": %q`, policy)
		}
		return fmt.Sprintf(`"%s-%s": {"max_events": %d, "window": "1h"%s}`, t.Name(), name, events, policy)
	}
	for _, c := range []struct {
		name     string
		handler  string // on_store_error of the handler
		zones    []string
		statuses []int
		policies string // the zones in RateLimit-Policy
		limit    string // the zone in RateLimit, and how much is left
	}{
		{"all allow", "allow", []string{zone("a", "", 1), zone("b", "", 1)}, []int{200, 200, 200}, "", ""},
		{"one denies", "allow", []string{zone("c", "", 1), zone("d", "deny", 9), zone("e", "local", 9)}, []int{503, 503}, "", ""},
		{"one allows", "deny", []string{zone("f", "allow", 1)}, []int{200, 200}, "", ""},
		{"one is local", "allow", []string{zone("g", "", 1), zone("h", "local", 4)}, []int{200, 200, 429, 429}, "h", "h 0"},
		{"all are local", "local", []string{zone("i", "", 4), zone("j", "", 100)}, []int{200, 200, 429, 429}, "i j", "i 0"},
		{"limit 0", "local", []string{zone("k", "", 0)}, []int{429}, "k", "k 0"},
		{"less than one each", "local", []string{zone("l", "", 1)}, []int{200, 429}, "l", "l 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := caddytest.Load(t, `{`+caddytest.Failing(t, caddytest.ErrNoAnswer).Option()+`"on_store_error": "`+c.handler+`", "instances": 2,
				"rate_limits": {`+strings.Join(c.zones, ",")+`}}`)
			var header http.Header
			for i, want := range c.statuses {
				var status int
				if status, header = caddytest.Serve(t, h, "203.0.113.7:1"); status != want {
					t.Fatalf("request %d: status %d, want %d", i+1, status, want)
				}
				if (header.Get("Retry-After") != "") != (want != http.StatusOK) {
					t.Errorf("request %d: status %d with Retry-After %q", i+1, status, header.Get("Retry-After"))
				}
			}
			var names []string
			policies, err := httpsfv.UnmarshalList(header.Values("RateLimit-Policy"))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range policies {
				names = append(names, strings.TrimPrefix(p.(httpsfv.Item).Value.(string), "TestZonesDisagreeOnStoreErrors-"))
			}
			if strings.Join(names, " ") != c.policies {
				t.Errorf("RateLimit-Policy has the zones %q, want %q", names, c.policies)
			}
			limit := strings.NewReplacer(`"TestZonesDisagreeOnStoreErrors-`, "", `";r=`, " ", ";t=", " ").Replace(header.Get("RateLimit"))
			if !strings.HasPrefix(limit, c.limit) || c.limit == "" && limit != "" {
				t.Errorf("RateLimit: %q, want %q", limit, c.limit)
			}
		})
	}
}

// TestFullStore: if the store has no room for a key, this instance decides locally, whatever
// on_store_error is. The log says once that the store is full.
func TestFullStore(t *testing.T) {
	for _, policy := range []string{config.AllowOnError, config.DenyOnError, config.LocalOnError} {
		t.Run(policy, func(t *testing.T) {
			undecided(t, store.ErrFull, policy, "is full", []int{200, 200, 200, 429, 429}, map[string]float64{
				"decisions_total{outcome=local,zone=z}":   3,
				"decisions_total{outcome=limited,zone=z}": 2,
				"store_up{store=test}":                    1,
				"store_errors_total{kind=oom,store=test}": 5,
			})
		})
	}
}

// TestBusy: a request that this process was too busy to ask about passes under no on_store_error. With local this
// instance decides. The store is not to blame, so it still counts as answering.
func TestBusy(t *testing.T) {
	for policy, statuses := range map[string][]int{
		config.AllowOnError: {503, 503, 503}, config.DenyOnError: {503, 503, 503}, config.LocalOnError: {200, 200, 200, 429, 429},
	} {
		t.Run(policy, func(t *testing.T) {
			undecided(t, store.ErrBusy, policy, "too busy", statuses, map[string]float64{
				"store_up{store=test}": 1, "store_errors_total{kind=busy,store=test}": float64(len(statuses)), "decisions_total{outcome=failed_open,zone=z}": 0,
			})
		})
	}
}

// undecided sends requests to a limit of 6, of which 3 are the share of this instance, while the store fails. It expects their
// statuses, one line of the log, and metrics.
func undecided(t *testing.T, failure error, policy, said string, statuses []int, metrics map[string]float64) {
	t.Helper()
	ctx, logs := caddytest.Logged(t)
	failing := caddytest.Failing(t, fmt.Errorf("queue: %w", failure))
	h := caddytest.LoadInto(t, ctx, `{`+failing.Option()+`"on_store_error": "`+policy+`", "instances": 2, "rate_limits": {"z": {"max_events": 6, "window": "1h"}}}`)
	for i, want := range statuses {
		status, header := caddytest.Serve(t, h, "203.0.113.7:1")
		if status != want || (header.Get("RateLimit") == "") != (want == 503) || want == 503 && header.Get("Retry-After") != "1" {
			t.Errorf("request %d: status %d, header %v, want %d", i+1, status, header, want)
		}
	}
	if lines := logs.FilterMessageSnippet("rate limit store"); lines.Len() != 1 || lines.FilterMessageSnippet(said).Len() != 1 {
		t.Errorf("logged %v, want one line which says %q", lines.All(), said)
	}
	counts := caddytest.Scrape(t, ctx)
	for metric, want := range metrics {
		if counts[metric] != want {
			t.Errorf("%s is %v, want %v, in %v", metric, counts[metric], want, counts)
		}
	}
	caddytest.CleanUp(t, h)
}
