package integration_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
)

// scrape reads the limiter's metrics, one line each, as Prometheus would.
func (s *server) scrape(client *http.Client) string {
	s.t.Helper()
	a := s.get(client, "/metrics")
	if a.status != http.StatusOK {
		s.t.Fatalf("/metrics: status %d: %s", a.status, a.body)
	}
	var ours strings.Builder
	for line := range strings.Lines(a.body) {
		if strings.Contains(line, "caddy_rate_limit_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

// expectLines looks for lines that must be there.
func expectLines(t *testing.T, when, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			name, _, _ := strings.Cut(line, "}")
			found := "it is missing"
			if _, after, ok := strings.Cut(text, "\n"+name); ok {
				found, _, _ = strings.Cut(name+after, "\n")
			}
			t.Errorf("%s: want %s: %s", when, line, found)
		}
	}
}

// TestMetricsScraped: what a Prometheus reads means what its help says, after a script
// of requests with known counts, before and after a reload.
func TestMetricsScraped(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dead := redistest.FreePort(t)
	config := func(events int) string {
		return caddyfile("", fmt.Sprintf(`
		metrics /metrics
		handle /memory {
			rate_limit {
				zone each {
					key {header.X-Client}
					events 3
					window 1h
				}
				zone all {
					algorithm token_bucket %d/1h
				}
			}
			respond ok
		}
		handle /redis {
			rate_limit {
				zone fleet {
					events 2
					window 1h
				}
				store redis {
					address %s
					timeout 10s
				}
			}
			respond ok
		}
		handle /dead {
			rate_limit {
				zone dead {
					events 2
					window 1h
				}
				store redis {
					address 127.0.0.1:%d
				}
				on_store_error deny
			}
			respond ok
		}
		handle /quiet {
			rate_limit {
				zone quiet {
					events 2
					window 1h
				}
				disable_metrics
			}
			respond ok
		}`, events, server.Addr(), dead))
	}
	s := startCaddy(t, config(7))
	client := newClient(t, "")
	script := func() {
		for _, step := range []struct {
			path, client string
			n            int
		}{{"/memory", "a", 4}, {"/memory", "b", 2}, {"/memory", "c", 3}, {"/redis", "", 5}, {"/dead", "", 3}, {"/quiet", "", 3}} {
			for range step.n {
				if _, err := sendAcross(client, s.url(step.path), "X-Client", step.client); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	script()
	// all has room for 7: 3 of a, 2 of b, 2 of c; then it refuses the last of c.
	first := "\n" + s.scrape(client)
	expectLines(t, "before the reload", first,
		`caddy_rate_limit_requests_total{zone="each"} 9`,
		`caddy_rate_limit_requests_total{zone="all"} 9`,
		`caddy_rate_limit_declined_requests_total{zone="each"} 1`,
		`caddy_rate_limit_declined_requests_total{zone="all"} 1`,
		`caddy_rate_limit_decisions_total{outcome="allowed",zone="all"} 7`,
		`caddy_rate_limit_decisions_total{outcome="not_charged",zone="all"} 1`,
		`caddy_rate_limit_decisions_total{outcome="not_charged",zone="each"} 1`,
		`caddy_rate_limit_keys_total{zone="each"} 3`,
		`caddy_rate_limit_keys_total{zone="all"} 1`,
		`caddy_rate_limit_process_time_seconds_count{zone="each"} 9`,
		`caddy_rate_limit_config{max_events="7",plan="",window="1h",zone="all"} 1`,
		`caddy_rate_limit_decisions_total{outcome="allowed",zone="fleet"} 2`,
		`caddy_rate_limit_decisions_total{outcome="refused",zone="fleet"} 3`,
		`caddy_rate_limit_decisions_total{outcome="failed_closed",zone="dead"} 3`,
		`caddy_rate_limit_store_up{store="redis `+server.Addr()+`"} 1`,
		fmt.Sprintf(`caddy_rate_limit_store_up{store="redis 127.0.0.1:%d"} 0`, dead),
		`caddy_rate_limit_store_up{store="memory"} 1`,
	)
	if strings.Contains(first, `zone="quiet"`) {
		t.Error("a zone with disable_metrics is in the metrics")
	}
	promtool(t, s.get(client, "/metrics").body)

	s.mustLoad(config(8))
	script()
	second := "\n" + s.scrape(client)
	expectLines(t, "after the reload", second,
		`caddy_rate_limit_requests_total{zone="each"} 18`,
		`caddy_rate_limit_decisions_total{outcome="allowed",zone="fleet"} 2`,
		`caddy_rate_limit_decisions_total{outcome="refused",zone="fleet"} 8`,
		`caddy_rate_limit_decisions_total{outcome="failed_closed",zone="dead"} 6`,
		`caddy_rate_limit_config{max_events="8",plan="",window="1h",zone="all"} 1`,
	)
	if strings.Contains(second, `max_events="7"`) {
		t.Error("the old config's limit is still in the metrics")
	}
	promtool(t, s.get(client, "/metrics").body)
}

// promtool has Prometheus's own linter look at the limiter's metrics.
func promtool(t *testing.T, metrics string) {
	t.Helper()
	t.Run("promtool", func(t *testing.T) {
		need(t, "promtool", "REQUIRE_PROMTOOL")
		var ours bytes.Buffer
		for line := range strings.Lines(metrics) {
			if strings.Contains(line, "caddy_rate_limit_") {
				ours.WriteString(line)
			}
		}
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = &ours
		if output, err := cmd.CombinedOutput(); err != nil || len(output) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, output)
		}
	})
}
