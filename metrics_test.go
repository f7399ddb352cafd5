package caddyratelimit

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// scrape returns the limiter's metrics of a config, as "name{labels}" without zeros.
func scrape(t *testing.T, ctx caddy.Context) map[string]float64 {
	t.Helper()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), "caddy_rate_limit_")
		for _, m := range f.GetMetric() {
			if !ours {
				break
			}
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" { // as good as not there
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				values[name+"{"+strings.Join(labels, ",")+"}"] = value
			}
		}
	}
	return values
}

func expectMetrics(t *testing.T, ctx caddy.Context, want map[string]float64) {
	t.Helper()
	got := scrape(t, ctx)
	if !maps.Equal(got, want) {
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

// TestMetrics counts a script of requests, before and after a reload.
func TestMetrics(t *testing.T) {
	const handler = `{"rate_limits": {
		"each": {"key": "{http.request.remote.host}", "max_events": 3, "window": "1h"},
		"all": {"max_events": %d, "window": "1h", "algorithm": "token_bucket"}}}`
	before := config(t)
	h := provision(t, before, fmt.Sprintf(handler, 4))
	for range 5 {
		serve(t, h, "203.0.113.7:1")
	}
	serve(t, h, "203.0.113.8:1")
	serve(t, h, "203.0.113.9:1")
	want := map[string]float64{
		"config{max_events=3,window=1h,zone=each}":       1,
		"config{max_events=4,window=1h,zone=all}":        1,
		"decisions_total{outcome=allowed,zone=all}":      4,
		"decisions_total{outcome=allowed,zone=each}":     4,
		"decisions_total{outcome=not_charged,zone=all}":  2,
		"decisions_total{outcome=not_charged,zone=each}": 1,
		"decisions_total{outcome=refused,zone=all}":      1,
		"decisions_total{outcome=refused,zone=each}":     2,
		"declined_requests_total{zone=all}":              1,
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

	after := config(t)
	next := provision(t, after, fmt.Sprintf(handler, 40))
	delete(want, "config{max_events=4,window=1h,zone=all}")
	want["config{max_events=40,window=1h,zone=all}"] = 1
	expectMetrics(t, after, want)
	serve(t, next, "203.0.113.7:1")
	want["decisions_total{outcome=not_charged,zone=all}"]++
	want["decisions_total{outcome=refused,zone=each}"]++
	for _, name := range []string{"declined_requests_total{zone=each}", "requests_total{zone=all}", "requests_total{zone=each}", "process_time_seconds{zone=all}", "process_time_seconds{zone=each}"} {
		want[name]++
	}
	expectMetrics(t, after, want)
}

// TestMetricsOfAStoreThatFails are those of requests that nobody decided on.
func TestMetricsOfAStoreThatFails(t *testing.T) {
	for policy, outcome := range map[string]string{zone.AllowOnError: "failed_open", zone.DenyOnError: "failed_closed"} {
		ctx := config(t)
		h := provision(t, ctx, `{"on_store_error": "`+policy+`", "rate_limits": {"failing `+policy+`": {"max_events": 3, "window": "1h"}}}`)
		failing, err := pool.Acquire(new(failingBackend))
		if err != nil {
			t.Fatal(err)
		}
		own := h.store
		h.store = failing
		for range 5 {
			serve(t, h, "203.0.113.7:1")
		}
		h.store = own
		got := scrape(t, ctx)
		if n := got["decisions_total{outcome="+outcome+",zone=failing "+policy+"}"]; n != 5 {
			t.Errorf("%s: %v of 5 requests are counted: %v", outcome, n, got)
		}
		if n := failing.Store.Health.ErrorCount(store.FailureOther); n != 5 {
			t.Errorf("%d of 5 errors are counted", n)
		}
		if err := failing.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestMetricsOfSlots: those in use, and no more when the requests are over.
func TestMetricsOfSlots(t *testing.T) {
	ctx := config(t)
	h := provision(t, ctx, `{"rate_limits": {"slots in use": {"max_events": 5, "algorithm": "concurrency"}}}`)
	const name = "concurrency_in_use{zone=slots in use}"
	w, held, err := h.decide(httptest.NewRecorder(), request(nil, "203.0.113.7:1"))
	if err != nil || w == nil || held == nil {
		t.Fatalf("not admitted: %v", err)
	}
	if got := scrape(t, ctx)[name]; got != 1 {
		t.Errorf("%v in use, want 1", got)
	}
	held.release()
	if got := scrape(t, ctx)[name]; got != 0 {
		t.Errorf("%v in use, want 0", got)
	}
}

// TestMetricsThatNobodyWants: a handler can keep out, and two may share all they have.
func TestMetricsThatNobodyWants(t *testing.T) {
	ctx := config(t)
	provision(t, ctx, `{"disable_metrics": true, "rate_limits": {"quiet": {"max_events": 3, "window": "1h"}}}`)
	if got := scrape(t, ctx); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	for range 2 {
		provision(t, ctx, `{"rate_limits": {"shared by two": {"max_events": 3, "window": "1h"}}}`)
	}
	redis := `{"store": {"backend": "redis", "address": ["127.0.0.1:1"], "db": %d}, "rate_limits": {"redis %d": {"max_events": 3, "window": "1h"}}}`
	for db := range 2 {
		provision(t, ctx, fmt.Sprintf(redis, db, db))
	}
	got := scrape(t, ctx)
	for _, name := range []string{"store_up{store=memory}", "store_up{store=redis 127.0.0.1:1}", "store_up{store=redis 127.0.0.1:1 #2}"} {
		if got[name] != 1 {
			t.Errorf("%s is missing in %v", name, got)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h stats.Histogram
	for _, d := range []time.Duration{0, time.Microsecond, 49 * time.Microsecond, 51 * time.Microsecond, time.Second, time.Hour} {
		h.Observe(d)
	}
	count, sum, buckets := h.Read(stats.FirstServerBound)
	if count != 6 || sum < 3601 || sum > 3602 {
		t.Errorf("%d, %v", count, sum)
	}
	if buckets[50e-6] != 3 || buckets[100e-6] != 4 || buckets[1] != 5 || buckets[5] != 5 || len(buckets) != len(stats.Bounds)-stats.FirstServerBound {
		t.Errorf("buckets %v", buckets)
	}
}
