//go:build deep

package observe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// metered has zones of a Redis, of one that is dead, and of the memory.
func metered(redis string, dead int, answer string) string {
	return harness.Caddyfile("", fmt.Sprintf(`
	metrics /metrics
	handle /redis {
		rate_limit {
			zone fleet {
				events 2
				window 1h
			}
			store redis {
				address %s
				timeout 10s
				deny_cache 1m
			}
		}
		respond %[3]s
	}
	handle /dead {
		rate_limit {
			zone open {
				events 2
				window 1h
			}
			store redis {
				address 127.0.0.1:%[2]d
				timeout 10s
			}
		}
		respond %[3]s
	}
	handle /memory {
		rate_limit {
			zone bans {
				key {header.X-Client}
				events 1
				window 1h
				ban 1h after 2 refusals in 10m
			}
			zone tried {
				events 1
				window 1h
				enforce 0
			}
		}
		respond %[3]s
	}`, redis, dead, answer))
}

// TestMetricsScraped: Prometheus reads what zones and stores have done, before and after a reload, and its linter takes
// the metrics. Package metrics tests the counts of each outcome.
func TestMetricsScraped(t *testing.T) {
	t.Parallel()
	server, dead := redistest.Start(t), redistest.FreePort(t)
	s := harness.StartCaddy(t, metered(server.Addr(), dead, "ok"))
	client := harness.NewClient(t, "")
	live, gone := `store="redis `+server.Addr()+`"}`, fmt.Sprintf(`store="redis 127.0.0.1:%d"}`, dead)
	for run := range 2 {
		if run > 0 {
			s.MustLoad(metered(server.Addr(), dead, "new"))
		}
		for _, path := range []string{"/redis", "/dead", "/memory"} {
			for range 5 {
				s.Get(client, path, "X-Client", fmt.Sprint(run))
			}
		}
		n := float64(run + 1)
		text := s.Scrape(client)
		got := harness.Nonzero(t, text)
		for name, want := range map[string]float64{
			`decisions_total{outcome="limited",zone="fleet"}`:                           3 + 5*(n-1),
			`decisions_total{outcome="failed_open",zone="open"}`:                        5 * n,
			`decisions_total{outcome="dry_run",zone="tried"}`:                           4 + 5*(n-1),
			`config{max_events="1",plan="",rollout="dry run",window="1h",zone="tried"}`: 1,
			`bans_total{zone="bans"}`:                                                   n,
			`keys_total{zone="bans"}`:                                                   n,
			`store_up{` + live:                                                          1,
			`store_up{` + gone:                                                          0,
			`store_up{store="memory"}`:                                                  1,
			`store_instances{` + live:                                                   1,
			`store_breaker_state{state="closed",` + live:                                1,
			`store_breaker_state{state="closed",` + gone:                                0,
			`store_deny_cache_hits_total{` + live:                                       3 + 4*(n-1),
		} {
			if got[name] != want {
				t.Errorf("run %d: %s is %v, want %v", run, name, got[name], want)
			}
		}
		errors := 0.0
		for name, value := range got {
			if strings.HasPrefix(name, "store_errors_total{") && strings.HasSuffix(name, gone) {
				errors += value
			}
		}
		if errors != 5*n || got[`store_latency_seconds_count{`+live] < n+1 {
			t.Errorf("run %d: %v errors, want %v; Redis was asked %v times", run, errors, 5*n, got[`store_latency_seconds_count{`+live])
		}
		promtool(t, text)
	}
}
