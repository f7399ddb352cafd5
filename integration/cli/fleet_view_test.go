//go:build deep

package cli_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestFleetInOneView: three instances whose admin endpoints cannot reach one another share a Redis. Each answers for all of
// them, with the sums that the clients have counted, and tells which one was killed, hangs, or has another config.
func TestFleetInOneView(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	config := harness.Caddyfile("", `
		rate_limit {
			zone shared {
				key {query.k}
				rate 10/1h
			}
			zone busy {
				key {query.k}
				rate 1000000/1h
			}
			`+harness.Redis(server.Addr())+`
		}
		respond ok`)
	a, b := harness.StartCaddy(t, config), harness.StartCaddy(t, config)
	c := harness.StartCaddy(t, strings.Replace(config, "1000000/1h", "2000000/1h", 1))
	client := harness.NewClient(t, "")
	admitted, sent := 0, 0
	for i, s := range []*harness.Server{a, b, c} {
		for range 4 + i {
			sent++
			if s.Get(client, "/?k=x").Status == http.StatusOK {
				admitted++
			}
		}
	}
	if admitted != 10 || sent != 15 {
		t.Fatalf("%d of %d admitted", admitted, sent)
	}
	patient.Until(t, "three heartbeats", func() bool {
		return server.Admin().ZCard(t.Context(), "rl:instances").Val() == 3
	})

	run := func(s *harness.Server, args ...string) string {
		t.Helper()
		output, err := s.RateLimit(args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
		return output
	}
	patient.Until(t, "zones of three instances", func() bool {
		return strings.Contains(run(a, "zones", "--fleet"), "Counted by 3 instances.")
	})
	for _, s := range []*harness.Server{a, b, c} {
		for args, want := range map[string][]string{
			"zones --fleet":              {`shared +[\d.]+/s +10 +5 +(- +)?10/1h sliding_window_log\n`, "Counted by 3 instances.\n", "has another config: these zones differ: busy.\n"},
			"zones shared --fleet":       {`allowed +10\n`, `limited +5\n`},
			"top shared --fleet":         {`shared +15 +5 +x\n`, "Counted by 3 instances since "},
			"top --refused --fleet":      {`shared +15 +5 +x\n`},
			"zones shared":               {`allowed +10\n`},
			"zones shared --fleet=false": {`rate +\d`},
		} {
			if s != a && !strings.HasPrefix(args, "top shared") && args != "zones --fleet" {
				continue // each command is asked of one, and two of all
			}
			output := run(s, strings.Fields(args)...)
			for _, w := range want {
				if !regexp.MustCompile(w).MatchString(output) {
					t.Errorf("%s: want %q in\n%s", args, w, output)
				}
			}
		}
	}
	if _, output, findings := a.Doctor("--json", "--fleet"); findings != nil || !strings.Contains(output, `"found"`) {
		t.Errorf("doctor --json --fleet:\n%s", output)
	}
	_, output, _ := a.Doctor("--fleet")
	if !regexp.MustCompile(`fail config: instance .*\n.*\s*these\s+zones\s+differ:\s+busy`).MatchString(output) || regexp.MustCompile(`(instances|version|clock): `).MatchString(output) {
		t.Errorf("doctor:\n%s", output)
	}

	// One is killed, and one hangs.
	killed, hangs := fmt.Sprintf("(process %d)", b.Process.PID()), fmt.Sprintf("(process %d)", c.Process.PID())
	if err := b.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Freeze(patient.Patience); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Thaw() }()
	patient.Until(t, "both to be told", func() bool {
		silent := 0
		var told struct {
			Instances []struct{ Name, State string }
		}
		a.Ask("/rate_limit/zones?fleet=1", &told)
		for _, i := range told.Instances {
			if (i.State == "silent" || i.State == "left") && (strings.HasSuffix(i.Name, killed) || strings.HasSuffix(i.Name, hangs)) {
				silent++
			}
		}
		return silent == 2
	})
	if output := run(a, "zones", "--fleet"); !regexp.MustCompile(`shared .* 10 +\d+\s`).MatchString(output) || !strings.Contains(output, "has been silent for ") && !strings.Contains(output, "has left") {
		t.Errorf("what they have counted is lost:\n%s", output)
	}
}
