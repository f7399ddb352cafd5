package limiter_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
			ctx, logs := caddytest.Logged(t)
			full := caddytest.Failing(t, fmt.Errorf("no room: %w", store.ErrFull))
			name := "full " + policy
			h := caddytest.LoadInto(t, ctx, `{`+full.Option()+`"on_store_error": "`+policy+`", "instances": 2, "rate_limits": {"`+name+`": {"max_events": 6, "window": "1h"}}}`)
			for i, want := range []int{200, 200, 200, 429, 429} {
				status, header := caddytest.Serve(t, h, "203.0.113.7:1")
				if status != want || header.Get("RateLimit") == "" {
					t.Errorf("request %d: status %d, header %v, want %d and a RateLimit", i+1, status, header, want)
				}
			}
			if lines := logs.FilterMessageSnippet("the rate limit store"); lines.Len() != 1 || lines.FilterMessageSnippet("is full").Len() != 1 {
				t.Errorf("logged %v, want one line which says that the store is full", lines.All())
			}
			counts := caddytest.Scrape(t, ctx)
			for metric, want := range map[string]float64{
				"decisions_total{outcome=local,zone=" + name + "}":   3,
				"decisions_total{outcome=limited,zone=" + name + "}": 2,
				"store_up{store=test}":                               1,
				"store_errors_total{kind=oom,store=test}":            5,
			} {
				if counts[metric] != want {
					t.Errorf("%s is %v, want %v, in %v", metric, counts[metric], want, counts)
				}
			}
		})
	}
}

// TestBusy: a request that this process was too busy to ask about passes under no on_store_error. With local this
// instance decides. The store is not to blame, so it still counts as answering.
func TestBusy(t *testing.T) {
	for policy, want := range map[string][]int{
		config.AllowOnError: {503, 503, 503}, config.DenyOnError: {503, 503, 503}, config.LocalOnError: {200, 429, 429},
	} {
		t.Run(policy, func(t *testing.T) {
			ctx, logs := caddytest.Logged(t)
			name := "busy " + policy
			h := caddytest.LoadInto(t, ctx, `{`+caddytest.Failing(t, fmt.Errorf("queue: %w", store.ErrBusy)).Option()+
				`"on_store_error": "`+policy+`", "instances": 2, "rate_limits": {"`+name+`": {"max_events": 2, "window": "1h"}}}`)
			for i, want := range want {
				if status, header := caddytest.Serve(t, h, "203.0.113.7:1"); status != want || want == 503 && header.Get("Retry-After") != "1" {
					t.Errorf("request %d: status %d, header %v, want %d", i+1, status, header, want)
				}
			}
			if lines := logs.FilterMessageSnippet("rate limit store"); lines.Len() != 1 || lines.FilterMessageSnippet("too busy").Len() != 1 {
				t.Errorf("logged %v, want one line which says that this Caddy is too busy", lines.All())
			}
			counts := caddytest.Scrape(t, ctx)
			for metric, want := range map[string]float64{
				"store_up{store=test}":                                   1,
				"store_errors_total{kind=busy,store=test}":               3,
				"decisions_total{outcome=failed_open,zone=" + name + "}": 0,
			} {
				if counts[metric] != want {
					t.Errorf("%s is %v, want %v", metric, counts[metric], want)
				}
			}
		})
	}
}
