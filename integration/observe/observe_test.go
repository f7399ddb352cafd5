//go:build deep

// Package observe_test tests the log, the access log, traces and metrics.
package observe_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// promtool runs Prometheus's own tool, which must have nothing to say unless it says SUCCESS.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	harness.NeedProgram(t, "promtool", "REQUIRE_PROMTOOL")
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = strings.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil || len(output) > 0 && args[1] == "metrics" {
		t.Errorf("promtool %v: %v\n%s", args, err, output)
	}
}

// TestAlerts: Prometheus takes the alert rules. Each alert fires in trouble, and none without.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", "../../examples/prometheus/alerts.yml")
	promtool(t, "", "check", "rules", "../../examples/prometheus/recording.yml")
	promtool(t, "", "test", "rules", "testdata/alerts.yml")
}

// TestMetricsScraped: Prometheus reads what a Redis that answers and one that is dead have done, and its linter takes the
// metrics. Package admin tests the counts of zones in memory, also over reloads.
func TestMetricsScraped(t *testing.T) {
	t.Parallel()
	server, dead := redistest.Start(t), fmt.Sprint("127.0.0.1:", redistest.FreePort(t))
	redis := func(address string) string {
		return "store redis {\naddress " + address + "\ntimeout 10s\ndeny_cache 1m\n}\n"
	}
	s := harness.StartCaddy(t, harness.Caddyfile("", harness.Limited("fleet", "rate 2/1h", redis(server.Addr()), "respond ok")+
		harness.Limited("open", "rate 2/1h", redis(dead), "respond ok")+harness.Limited("tried", "rate 2/1h\nenforce 0", "", "respond ok")))
	client := harness.NewClient(t, "")
	for range 5 {
		for _, zone := range []string{"fleet", "open", "tried"} {
			s.Get(client, "/"+zone)
		}
	}
	live, gone := `store="redis `+server.Addr()+`"}`, `store="redis `+dead+`"}`
	text, got := s.Scrape()
	for name, want := range map[string]float64{
		`decisions_total{outcome="limited",zone="fleet"}`:                           3,
		`decisions_total{outcome="failed_open",zone="open"}`:                        5,
		`decisions_total{outcome="dry_run",zone="tried"}`:                           3,
		`config{max_events="2",plan="",rollout="dry run",window="1h",zone="tried"}`: 1,
		`store_up{` + live:                           1,
		`store_up{` + gone:                           0,
		`store_instances{` + live:                    1,
		`store_breaker_state{state="closed",` + live: 1,
		`store_breaker_state{state="closed",` + gone: 0,
		`store_deny_cache_hits_total{` + live:        3,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	errors := 0.0
	for name, value := range got {
		if strings.HasPrefix(name, "store_errors_total{") && strings.HasSuffix(name, gone) {
			errors += value
		}
	}
	if errors != 5 || got[`store_latency_seconds_count{`+live] < 2 {
		t.Errorf("%v errors, want 5; Redis was asked %v times", errors, got[`store_latency_seconds_count{`+live])
	}
	promtool(t, text, "check", "metrics")
}

// TestCollector: metrics and decisions reach an OpenTelemetry collector by OTLP over HTTP, through what Caddy has for
// that. The stand-in for a collector checks the requests.
func TestCollector(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := make(map[string][]byte)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if kind := r.Header.Get("Content-Type"); err != nil || r.Method != http.MethodPost || kind != "application/x-protobuf" {
			t.Errorf("%s %s with %s: %v", r.Method, r.URL.Path, kind, err)
		}
		mu.Lock()
		sent[r.URL.Path] = append(sent[r.URL.Path], body...)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf") // an empty message, which means that all was accepted
	}))
	t.Cleanup(collector.Close)
	s := harness.StartCaddy(t, harness.Caddyfile(`
		metrics {
			otlp
		}`, `
		tracing {
			span traced
			span_attributes {
				rate_limit.outcome {vars.rate_limit}
				rate_limit.zone {http.rate_limit.zone}
			}
		}
		rate_limit {
			zone collected {
				rate 1/1h
			}
		}
		respond ok`), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	client := harness.NewClient(t, "")
	s.Get(client, "/")
	s.Get(client, "/")
	s.Stop() // sends the rest
	mu.Lock()
	defer mu.Unlock()
	for path, texts := range map[string][]string{
		"/v1/metrics": {"caddy_rate_limit_decisions_total", "caddy_rate_limit_store_up", "collected", "limited"},
		"/v1/traces":  {"traced", "rate_limit.outcome", "rate_limit.zone", "collected", "limited"},
	} {
		for _, text := range texts {
			if !bytes.Contains(sent[path], []byte(text)) {
				t.Errorf("%s has not got %s in %d bytes", path, text, len(sent[path]))
			}
		}
	}
}

// TestKeyNotInLogs: keys are personal or secret, and stay out of this module's log lines unless
// the config asks for them, whatever goes wrong.
func TestKeyNotInLogs(t *testing.T) {
	t.Parallel()
	redisServer := redistest.Start(t)
	down := "store redis {\naddress 127.0.0.1:" + strconv.Itoa(redistest.FreePort(t)) + "\n}\n"
	cases := []struct {
		zone, options string
		logged        bool
	}{
		{"default", harness.Memory, false},
		{"off", "log_key false\n" + harness.Memory, false},
		{"on", "log_key\n" + harness.Memory, true},
		{"redis", harness.Redis(redisServer.Addr()), false},
		{"allow", down + "on_store_error allow\n", false},
		{"deny", down + "on_store_error deny\n", false},
	}
	text := ""
	for _, c := range cases {
		text += harness.Limited(c.zone, "key {header.X-Api-Key}\nrate 1/1h", c.options, "respond ok")
	}
	s := harness.StartCaddy(t, harness.Caddyfile("debug", text))
	client := harness.NewClient(t, "")
	secret := func(zone string) string { return "sk-5e0c1d3f-" + zone }
	for _, c := range cases {
		for range 3 {
			s.Get(client, "/"+c.zone, "X-Api-Key", secret(c.zone))
		}
	}
	lines := s.LinesOf(harness.OurLogger)
	if !bytes.Contains(s.Log(), []byte(`"rate limit exceeded"`)) {
		t.Errorf("no line about a refusal, although debug logging is on: %v", lines)
	}
	for _, c := range cases {
		logged := false
		for _, l := range lines {
			logged = logged || strings.Contains(l.Text, secret(c.zone))
		}
		if logged != c.logged {
			t.Errorf("zone %s: the key is in this module's log lines: %v, want %v", c.zone, logged, c.logged)
		}
	}
	// Libraries that write past Caddy's logger know the keys, too.
	_, strange := s.Lines()
	for _, text := range strange {
		if strings.Contains(text, "sk-5e0c1d3f") {
			t.Errorf("the log holds the key: %s", text)
		}
	}
	t.Logf("%d lines of this module, %d that are no JSON: %q", len(lines), len(strange), strange)
}
