package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestDryRunIsVisible: while a limit is tried out, commands and metrics show that it is, and which
// clients it would refuse.
func TestDryRunIsVisible(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
	metrics /metrics
	rate_limit {
		zone tried {
			key     {query.k}
			events  2
			window  1h
			dry_run
		}
		zone half {
			key     {query.k}
			events  100
			window  1h
			enforce 50
		}
		zone strict {
			key     {query.k}
			events  100
			window  1h
		}
	}
	respond / ok`))
	client := harness.NewClient(t, "")
	s.Admitted(client, 5, harness.WithKey("greedy"))
	s.Admitted(client, 1, harness.WithKey("modest"))
	for command, want := range map[string]string{
		"top tried --dry-run": `ZONE   REQUESTS  REFUSED  DRY RUN  KEY\ntried  5         0        3        greedy\n\nCounted by this instance since \d\d:\d\d:\d\d\.\n$`,
		"top tried":           `tried  5         0        3        greedy\ntried  1         0        0        modest\n`,
		"top tried --json":    `"dry_run": 3`,
		"zones":               `(?s)half +sliding_window_log 100/1h \(enforce 50 %\).*strict +sliding_window_log 100/1h  .*tried +sliding_window_log 2/1h \(dry run\) .* 3  `,
		"zones tried":         `limit +sliding_window_log 2/1h \(dry run\)\n`,
		"zones half --json":   `"rollout": "enforce 50 %"`,
		"get tried greedy":    `(?s)limit +sliding_window_log 2/1h \(dry run\)\n.*5 requests, 0 refused, 3 would have been refused`,
	} {
		output, err := s.RateLimit(strings.Fields(command)...)
		if err != nil || !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("%s: %v\n%s\nwant %s", command, err, output, want)
		}
	}
	if _, err := s.RateLimit("top", "--refused", "--dry-run"); err == nil {
		t.Error("top sorts by two counts")
	}
	text := s.Scrape(client)
	for _, want := range []string{
		`caddy_rate_limit_config{max_events="2",plan="",rollout="dry run",window="1h",zone="tried"} 1`,
		`caddy_rate_limit_config{max_events="100",plan="",rollout="enforce 50 %",window="1h",zone="half"} 1`,
		`caddy_rate_limit_config{max_events="100",plan="",rollout="",window="1h",zone="strict"} 1`,
		`caddy_rate_limit_decisions_total{outcome="dry_run",zone="tried"} 3`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}
