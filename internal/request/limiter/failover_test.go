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
