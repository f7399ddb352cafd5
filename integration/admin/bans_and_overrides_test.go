package admin_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestBansAndOverridesAreListed: bans and overrides in force are listed, with their keys, who set them, and until when.
func TestBansAndOverridesAreListed(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		s := harness.StartCaddy(t, harness.ByQuery(store, "overrides", "ban 10h after 2 refusals in 5m"))
		client := harness.NewClient(t, "")
		run := func(line string) string {
			t.Helper()
			output, err := s.RateLimit(strings.Split(line, "|")...)
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, output)
			}
			return output
		}
		for _, list := range []string{"bans", "overrides"} {
			if output := run(list); !strings.HasPrefix(output, "There are no "+list+".\n") {
				t.Errorf("%s: %s", list, output)
			}
		}
		s.Admitted(client, 4, harness.WithKey("greedy"))
		s.Admitted(client, 3, harness.WithKey("once"))
		run("ban|odd / zone|bad boy|--for|2h|--note|scrapes")
		run("set|odd / zone|friend|--exempt")
		run("set|odd / zone|big|500/1h")
		for line, want := range map[string]string{
			"bans":                 `^ZONE .*\n'odd / zone'  operator  .* \(in (2h|1h59m).*\), note: scrapes +'bad boy'\n'odd / zone'  refusals  .* \(in (10h|9h59m).*\) +greedy\n$`,
			"bans|odd / zone":      `greedy\n`,
			"overrides|odd / zone": `(?s)sliding_window_log 500/1h until it is cleared +big\n`,
			"overrides":            `exempt until it is cleared +friend\n`,
			"bans|--json":          `"key": "greedy",\s+"by": "refusals",\s+"kind": "banned"`,
		} {
			if output := run(line); !regexp.MustCompile(want).MatchString(output) {
				t.Errorf("%s:\n%s\nwant %s", line, output, want)
			}
		}
		if n := strings.Count(run("overrides"), "\n"); n != 4 {
			t.Errorf("%d lines for 3 overrides", n)
		}
		run("unban|odd / zone|greedy")
		run("unban|odd / zone|bad boy")
		if output := run("bans"); !strings.HasPrefix(output, "There are no bans.\n") {
			t.Error(fmt.Sprint("after both were unbanned: ", output))
		}
	})
}
