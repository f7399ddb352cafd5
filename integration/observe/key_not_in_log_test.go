//go:build deep

package observe_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

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
		text += `
			handle /` + c.zone + ` {
				rate_limit {
					zone ` + c.zone + ` {
						key {header.X-Api-Key}
						rate 1/1h
					}
					` + c.options + `
				}
				respond ok
			}`
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
	if harness.CountLines(lines, "rate limit exceeded") == 0 {
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
