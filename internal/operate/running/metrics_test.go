package running_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// expectMetrics compares all metrics of a config.
func expectMetrics(t *testing.T, ctx caddy.Context, want map[string]float64) {
	t.Helper()
	if got := caddytest.Scrape(t, ctx); !maps.Equal(got, want) {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if got[name] != want[name] {
				t.Errorf("%s is %v, want %v", name, got[name], want[name])
			}
		}
		for name := range want {
			if _, ok := got[name]; !ok {
				t.Errorf("%s is missing", name)
			}
		}
	}
}

// TestMetrics: requests are counted, and a reload does not change the counts.
func TestMetrics(t *testing.T) {
	const handler = `{"rate_limits": {
		"each": {"key": "{http.request.remote.host}", "max_events": 3, "window": "1h"},
		"all": {"max_events": %d, "window": "1h", "algorithm": "token_bucket"}}}`
	before := caddytest.Config(t)
	h := caddytest.LoadInto(t, before, fmt.Sprintf(handler, 4))
	for range 5 {
		caddytest.Serve(t, h, "203.0.113.7:1")
	}
	caddytest.Serve(t, h, "203.0.113.8:1")
	caddytest.Serve(t, h, "203.0.113.9:1")
	want := map[string]float64{
		"config{max_events=3,window=1h,zone=each}":       1,
		"config{max_events=4,window=1h,zone=all}":        1,
		"decisions_total{outcome=allowed,zone=all}":      4,
		"decisions_total{outcome=allowed,zone=each}":     4,
		"decisions_total{outcome=not_charged,zone=all}":  2,
		"decisions_total{outcome=not_charged,zone=each}": 1,
		"decisions_total{outcome=limited,zone=all}":      1,
		"decisions_total{outcome=limited,zone=each}":     2,
		"declined_requests_total{zone=all}":              1,
		"near_limit_requests_total{zone=all}":            1,
		"near_limit_requests_total{zone=each}":           1,
		"declined_requests_total{zone=each}":             2,
		"requests_total{zone=all}":                       7,
		"requests_total{zone=each}":                      7,
		"process_time_seconds{zone=all}":                 7,
		"process_time_seconds{zone=each}":                7,
		"keys_total{zone=all}":                           1,
		"keys_total{zone=each}":                          2,
		"store_up{store=memory}":                         1,
	}
	expectMetrics(t, before, want)

	after := caddytest.Config(t)
	next := caddytest.LoadInto(t, after, fmt.Sprintf(handler, 40))
	delete(want, "config{max_events=4,window=1h,zone=all}")
	want["config{max_events=40,window=1h,zone=all}"] = 1
	expectMetrics(t, after, want)
	caddytest.Serve(t, next, "203.0.113.7:1")
	want["decisions_total{outcome=not_charged,zone=all}"]++
	want["decisions_total{outcome=limited,zone=each}"]++
	for _, name := range []string{"declined_requests_total{zone=each}", "requests_total{zone=all}", "requests_total{zone=each}", "process_time_seconds{zone=all}", "process_time_seconds{zone=each}"} {
		want[name]++
	}
	expectMetrics(t, after, want)
}

// TestMetricsOfSlots: slots in use are counted until their requests are over.
func TestMetricsOfSlots(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"slots in use": {"max_events": 5, "algorithm": "concurrency"}}}`)
	const name = "concurrency_in_use{zone=slots in use}"
	w, admitted := httptest.NewRecorder(), false
	err := h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		admitted = true
		if got := caddytest.Scrape(t, ctx)[name]; got != 1 {
			t.Errorf("%v slots in use, want 1", got)
		}
		return nil
	}))
	if err != nil || !admitted {
		t.Fatalf("admitted: %v, %v", admitted, err)
	}
	if got := caddytest.Scrape(t, ctx)[name]; got != 0 {
		t.Errorf("%v slots in use, want 0", got)
	}
}

// TestDisabledMetrics: a handler may have no metrics.
func TestDisabledMetrics(t *testing.T) {
	ctx := caddytest.Config(t)
	caddytest.LoadInto(t, ctx, `{"disable_metrics": true, "rate_limits": {"quiet": {"max_events": 3, "window": "1h"}}}`)
	if got := caddytest.Scrape(t, ctx); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}

// TestSharedMetrics: two handlers with the same zone and store share their metrics. Two databases of
// one Redis are two stores.
func TestSharedMetrics(t *testing.T) {
	ctx := caddytest.Config(t)
	for range 2 {
		caddytest.LoadInto(t, ctx, `{"rate_limits": {"shared by two": {"max_events": 3, "window": "1h"}}}`)
	}
	const redis = `{"store": {"backend": "redis", "address": ["127.0.0.1:1"], "db": %d}, "rate_limits": {"redis %d": {"max_events": 3, "window": "1h"}}}`
	for db := range 2 {
		caddytest.LoadInto(t, ctx, fmt.Sprintf(redis, db, db))
	}
	got := caddytest.Scrape(t, ctx)
	for _, name := range []string{"store_up{store=memory}", "store_up{store=redis 127.0.0.1:1}", "store_up{store=redis 127.0.0.1:1 #2}"} {
		if got[name] != 1 {
			t.Errorf("%s is missing in %v", name, got)
		}
	}
}

// TestMetricsOfPlans: there is a config metric for each plan, and one count of the keys of all plans.
func TestMetricsOfPlans(t *testing.T) {
	ctx := caddytest.Config(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"tariffs": {
		"key": "{http.request.header.Key}", "max_events": "{http.vars.quota} 5", "window": "1h",
		"plan": {"of": "{http.vars.plan}", "plans": {
			"bucket": {"algorithm": "token_bucket", "max_events": 7}, "slots": {"algorithm": "concurrency", "max_events": 2}, "staff": {"unlimited": true}}}}}}`)
	for _, plan := range []string{"bucket", "none", "bucket", "staff"} {
		caddytest.Ask(t, h, "/", "Key", "client", "plan", plan)
	}
	caddytest.Ask(t, h, "/", "Key", "other", "plan", "bucket")
	got := caddytest.Scrape(t, ctx)
	for name, want := range map[string]float64{
		"config{max_events={http.vars.quota} 5,window=1h,zone=tariffs}": 1,
		"config{max_events=7,plan=bucket,window=1h,zone=tariffs}":       1,
		"config{max_events=2,plan=slots,zone=tariffs}":                  1,
		"keys_total{zone=tariffs}":                                      3,
		"decisions_total{outcome=exempt,zone=tariffs}":                  1,
		"decisions_total{outcome=allowed,zone=tariffs}":                 4,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v, in %v", name, got[name], want, got)
		}
	}
}

// TestMetricsOfBans: a ban is counted when it begins, and not in a dry run.
func TestMetricsOfBans(t *testing.T) {
	ctx := caddytest.Config(t)
	const banning = `"key": "{http.request.header.X-Key}", "max_events": 1, "window": "1m", "ban": {"duration": "1h", "after": 3, "window": "10m"}`
	h := caddytest.LoadInto(t, ctx, `{"log": "off", "rate_limits": {"bans counted": {`+banning+`}, "bans tried": {"enforce": 0, `+banning+`}}}`)
	for _, key := range []string{"a", "b"} {
		caddytest.Statuses(t, h, 6, "X-Key", key)
	}
	got := caddytest.Scrape(t, ctx)
	if n, dry := got["bans_total{zone=bans counted}"], got["bans_total{zone=bans tried}"]; n != 2 || dry != 0 {
		t.Errorf("%v bans are counted and %v of a dry run, want 2 and 0", n, dry)
	}
}
