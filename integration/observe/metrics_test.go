package observe_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// metered has zones for everything that can happen to a request.
func metered(events int, redis string, dead int) string {
	return harness.Caddyfile("", fmt.Sprintf(`
		metrics /metrics
		handle /memory {
			rate_limit {
				zone each {
					key {header.X-Client}
					events 3
					window 1h
				}
				zone all {
					algorithm fixed_window %d/1h
					align first_request
				}
			}
			respond ok
		}
		handle /policies {
			rate_limit {
				zone policies {
					key {header.X-Client}
					events 100
					window 1h
					block header X-Bad yes
					exempt header X-Friend yes
				}
				zone dry {
					events 1
					window 1h
					dry_run
				}
			}
			respond ok
		}
		handle /ban {
			rate_limit {
				zone bans {
					key {header.X-Run}
					events 1
					window 1h
					ban 1h after 2 refusals in 10m
				}
			}
			respond ok
		}
		handle /wait {
			rate_limit {
				zone slots {
					algorithm concurrency
					events 5
				}
				zone turns {
					key {header.X-Run}
					algorithm leaky_bucket 1/1h
					mode queue
					burst 2
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
					deny_cache 1m
				}
			}
			respond ok
		}
		handle /dead/* {
			rate_limit {
				zone closed {
					match path /dead/closed
					events 2
					window 1h
					on_store_error deny
				}
				zone open {
					match path /dead/open
					events 2
					window 1h
				}
				zone local {
					match path /dead/local
					key {header.X-Run}
					events 2
					window 1h
					on_store_error local
				}
				store redis {
					address 127.0.0.1:%d
					timeout 10s
				}
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
		}`, events, redis, dead))
}

// counts are the outcomes of requests, by zone.
type counts map[string]map[string]int

func (c counts) add(more counts) {
	for zone, outcomes := range more {
		if c[zone] == nil {
			c[zone] = make(map[string]int)
		}
		for outcome, n := range outcomes {
			c[zone][outcome] += n
		}
	}
}

// samples are what the metrics of the zones must then say.
func (c counts) samples() map[string]float64 {
	samples := make(map[string]float64)
	for zone, outcomes := range c {
		of := func(name string, n int) { samples[name+`{zone="`+zone+`"}`] += float64(n) }
		for outcome, n := range outcomes {
			samples[`decisions_total{outcome="`+outcome+`",zone="`+zone+`"}`] = float64(n)
			of("requests_total", n)
			switch outcome {
			case "limited", "banned":
				of("declined_requests_total", n)
			case "rejected":
				of("declined_requests_total", n)
				continue // the store was not asked, so nothing took time
			case "exempt":
				continue
			}
			of("process_time_seconds_count", n)
		}
	}
	return samples
}

// alike are the outcomes of the requests in each run of the script; the other outcomes depend on
// the runs before.
var alike = counts{
	"policies": {"allowed": 3, "rejected": 1, "exempt": 1},
	"bans":     {"allowed": 1, "limited": 2, "banned": 3},
	"closed":   {"failed_closed": 3},
	"open":     {"failed_open": 2},
	"local":    {"local": 2, "limited": 1},
	"slots":    {"allowed": 1, "abandoned": 1},
	"turns":    {"allowed": 1, "abandoned": 1},
}

// TestMetricsScraped: Prometheus reads what the help texts say, no more and no less, after a
// script of requests with known counts, before and after a reload.
func TestMetricsScraped(t *testing.T) {
	t.Parallel()
	server, dead := redistest.Start(t), redistest.FreePort(t)
	s := harness.StartCaddy(t, metered(7, server.Addr(), dead))
	client := harness.NewClient(t, "")
	live, gone := `{store="redis `+server.Addr()+`"}`, fmt.Sprintf(`{store="redis 127.0.0.1:%d"}`, dead)
	met, asserted := make(counts), make(map[string]bool)
	for run, expected := range []struct {
		limitOfAll int
		met        counts
		keys, near map[string]float64
		denyHits   float64
	}{
		// all has room for 7: 3 of a, 2 of b, 2 of c.
		{7, counts{
			"each":  {"allowed": 7, "limited": 1, "not_charged": 1},
			"all":   {"allowed": 7, "limited": 1, "not_charged": 1},
			"dry":   {"allowed": 1, "dry_run": 3, "not_charged": 1},
			"fleet": {"allowed": 2, "limited": 3},
		}, map[string]float64{"bans": 1, "turns": 1}, map[string]float64{"each": 1, "all": 2, "dry": 1, "bans": 1, "fleet": 1, "local": 1}, 3},
		// One more for b. A new config does not know what an old one was told: Redis is asked once more.
		{8, counts{
			"each":  {"allowed": 1, "limited": 5, "not_charged": 3},
			"all":   {"allowed": 1, "limited": 4, "not_charged": 4},
			"dry":   {"dry_run": 4, "not_charged": 1},
			"fleet": {"limited": 5},
		}, map[string]float64{"bans": 2, "turns": 2}, map[string]float64{"each": 2, "all": 3, "dry": 1, "bans": 2, "fleet": 1, "local": 2}, 7},
	} {
		if run > 0 {
			s.MustLoad(metered(expected.limitOfAll, server.Addr(), dead))
		}
		runScript(t, s, client, strconv.Itoa(run))
		met.add(alike)
		met.add(expected.met)
		want := met.samples()
		for zone, keys := range map[string]float64{"each": 3, "all": 1, "policies": 1, "dry": 1, "bans": expected.keys["bans"], "turns": expected.keys["turns"]} {
			want[`keys_total{zone="`+zone+`"}`] = keys
		}
		for zone, limit := range map[string]string{
			"each": "3", "all": strconv.Itoa(expected.limitOfAll), "policies": "100", "dry": "1", "bans": "1", "turns": "1",
			"fleet": "2", "closed": "2", "open": "2", "local": "2",
		} {
			rollout := map[string]string{"dry": "dry run"}[zone]
			want[`config{max_events="`+limit+`",plan="",rollout="`+rollout+`",window="1h",zone="`+zone+`"}`] = 1
		}
		want[`config{max_events="5",plan="",rollout="",window="",zone="slots"}`] = 1
		want[`bans_total{zone="bans"}`] = expected.keys["bans"]
		for zone, n := range expected.near {
			want[`near_limit_requests_total{zone="`+zone+`"}`] = n
		}
		want[`store_up`+live], want[`store_up{store="memory"}`], want[`store_instances`+live], want[`store_instances`+gone] = 1, 1, 1, 1
		want[`store_breaker_state{state="closed",`+live[1:]] = 1
		want[`store_deny_cache_hits_total`+live] = expected.denyHits

		text := s.Scrape(client)
		got, errors, breaker := make(map[string]float64), 0.0, 0.0
		for name, value := range harness.Nonzero(t, text) {
			family, labels, _ := strings.Cut(name, "{")
			asserted[family] = true
			switch {
			case strings.HasSuffix(family, "_bucket"), strings.HasSuffix(family, "_sum"), family == "store_queue_seconds_total":
			case family == "store_latency_seconds_count" && "{"+labels == live: // and what was known, but took its time
				if asked := float64(2 + run); value < asked || value > asked+expected.denyHits {
					t.Errorf("run %d: %s %v", run, name, value)
				}
			case family == "store_latency_seconds_count" && "{"+labels == gone: // until the breaker opened
				if value < 5 || value > 8*float64(run+1) {
					t.Errorf("run %d: %s %v", run, name, value)
				}
			case family == "store_errors_total" && strings.HasSuffix(name, gone[1:]):
				errors += value
			case family == "store_breaker_state" && strings.HasSuffix(name, gone[1:]) && !strings.Contains(labels, `"closed"`):
				breaker += value
			default:
				got[name] = value
			}
		}
		if errors != 8*float64(run+1) || breaker != 1 {
			t.Errorf("run %d: %v errors, want %d; the breaker is in %v states that are not closed", run, errors, 8*(run+1), breaker)
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("run %d: %s is %v, want %v", run, name, got[name], value)
			}
			delete(got, name)
		}
		for name, value := range got {
			t.Errorf("run %d: %s %v is unexpected", run, name, value)
		}
		promtool(t, text)
	}
	asserted["concurrency_in_use"] = true           // by the script, while a request waited
	asserted["store_queue_seconds_total"] = true    // by TestNoClientCausesStoreErrors
	asserted["store_silent_servers"] = true         // by TestSilentSentinels
	asserted["store_lost_corrections_total"] = true // by TestLateChargesWhileRedisIsAway
	for line := range strings.Lines(s.Scrape(client)) {
		if family, isType := strings.CutPrefix(line, "# TYPE caddy_rate_limit_"); isType {
			if family, _, _ = strings.Cut(family, " "); !asserted[family] && !asserted[family+"_count"] {
				t.Errorf("nothing is known of %s", family)
			}
		}
	}
}

// runScript sends requests with known counts.
func runScript(t *testing.T, s *harness.Server, client *http.Client, run string) {
	t.Helper()
	for _, step := range []struct {
		path   string
		n      int
		header []string
	}{
		{"/memory", 4, []string{"X-Client", "a"}},
		{"/memory", 2, []string{"X-Client", "b"}},
		{"/memory", 3, []string{"X-Client", "c"}},
		{"/policies", 3, []string{"X-Client", "a"}},
		{"/policies", 1, []string{"X-Bad", "yes"}},
		{"/policies", 1, []string{"X-Friend", "yes"}},
		{"/ban", 6, []string{"X-Run", run}},
		{"/redis", 5, nil},
		{"/dead/closed", 3, nil},
		{"/dead/open", 2, nil},
		{"/dead/local", 3, []string{"X-Run", run}},
		{"/quiet", 3, nil},
		{"/wait", 1, []string{"X-Run", run}},
	} {
		for range step.n {
			if _, err := harness.Send(client, s.URL(step.path), step.header...); err != nil {
				t.Fatal(err)
			}
		}
	}
	// One request waits for its turn, holds a slot meanwhile, and leaves.
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL("/wait"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Run", run)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
			t.Errorf("status %d, without waiting", response.StatusCode)
		}
	})
	in := func(line string) func() bool {
		return func() bool { return strings.Contains(s.Scrape(client), "caddy_rate_limit_"+line+"\n") }
	}
	patient.Until(t, "a slot to be in use", in(`concurrency_in_use{zone="slots"} 1`))
	leave()
	waiting.Wait()
	patient.Until(t, "the slot to be free", in(`concurrency_in_use{zone="slots"} 0`))
	runs, _ := strconv.Atoi(run)
	patient.Until(t, "the client to have left", in(fmt.Sprintf(`decisions_total{outcome="abandoned",zone="turns"} %d`, runs+1)))
}
