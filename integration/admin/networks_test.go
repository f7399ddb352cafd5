//go:build deep

package admin_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestNetworks: a ban, a limit or an exemption of a network holds for all of its addresses, at all instances with the same
// store and after a reload. A longer prefix decides before a shorter one, and an address before all networks.
func TestNetworks(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		config := harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
			rate_limit {
				zone clients {
					key {client_ip}
					rate 2/1h
					overrides
				}
				zone trial {
					key {client_ip}
					rate 100/1h
					overrides
					dry_run
				}
				`+store+`
			}
			respond ok`)
		fleet := []*harness.Server{harness.StartCaddy(t, config)}
		if store != harness.Memory {
			fleet = append(fleet, harness.StartCaddy(t, config))
		}
		client := harness.NewClient(t, "")
		run := func(line string) string {
			t.Helper()
			output, err := fleet[0].RateLimit(strings.Split(line, "|")...)
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, output)
			}
			return output
		}
		get := func(s *harness.Server, address string) harness.Answer {
			return s.Get(client, "/", "X-Forwarded-For", address)
		}
		expect := func(address string, status int) {
			t.Helper()
			for _, s := range fleet {
				patient.Until(t, fmt.Sprintf("%s gets %d", address, status), func() bool { return get(s, address).Status == status })
			}
		}
		if output := run("top|clients|--networks"); !strings.Contains(output, "counting has just begun") {
			t.Errorf("top --networks at first: %s", output)
		}
		run("ban|clients|203.0.113.0/24|--for|1h|--note|bots")
		expect("203.0.113.1", 429)
		if a := get(fleet[0], "203.0.113.2"); !regexp.MustCompile(`^3[56]\d\d$`).MatchString(a.Header.Get("Retry-After")) {
			t.Errorf("Retry-After: %q, want nearly an hour", a.Header.Get("Retry-After"))
		}
		expect("203.0.112.1", 200)
		run("set|clients|203.0.113.64/26|--exempt")
		expect("203.0.113.65", 200)
		for range 5 {
			expect("203.0.113.65", 200)
		}
		run("set|clients|203.0.113.66|1/1h") // of the address itself
		get(fleet[0], "203.0.113.66")
		expect("203.0.113.66", 429)
		run("set|clients|203.0.113.66|--clear")
		expect("203.0.113.66", 200)
		run("set|clients|2001:db8::/32|9/1h")
		for range 9 {
			get(fleet[0], "2001:db8::1")
		}
		expect("2001:db8::2", 429) // the same /64
		patient.Until(t, "all instances have the limit", func() bool {
			return strings.Contains(get(fleet[len(fleet)-1], "2001:db8:2::1").Header.Get("RateLimit-Policy"), "q=9")
		})
		if a := get(fleet[len(fleet)-1], "2001:db8:1::1"); a.Status != http.StatusOK || !strings.Contains(a.Header.Get("RateLimit-Policy"), "q=9") {
			t.Errorf("another /64: %d, policy %q", a.Status, a.Header.Get("RateLimit-Policy"))
		}
		run("ban|trial|198.51.100.0/24")
		expect("198.51.100.1", 200) // a dry run refuses nothing

		for line, want := range map[string]string{
			"bans|clients":              `operator  .* [1-9]\d* requests, note: bots +203\.0\.113\.0/24\n`,
			"overrides|clients":         `9/1h until it is cleared.* +2001:db8::/32\n`,
			"top|clients|--networks":    `REFUSED +KEYS +BEFORE +NETWORK\n(?s).*\d+ +\d+ +about \d+ +- +\S+\n`,
			"get|clients|203.0.113.9":   `an operator has banned its network 203\.0\.113\.0/24 until`,
			"get|clients|203.0.113.99":  `exempt as all of 203\.0\.113\.64/26`,
			"get|clients|2001:db8:7::1": `9/1h as all of 2001:db8::/32`,
			"explain|--header|X-Forwarded-For: 203.0.113.9|" + fleet[0].URL("/"): `its network 203\.0\.113\.0/24 is banned`,
		} {
			if output := run(line); !regexp.MustCompile(want).MatchString(output) {
				t.Errorf("%s:\n%s\nwant %s", line, output, want)
			}
		}
		fleet[0].MustLoad(config)
		if a := get(fleet[0], "203.0.113.3"); a.Status != http.StatusTooManyRequests {
			t.Errorf("after a reload: %d", a.Status)
		}
		run("unban|clients|203.0.113.0/24")
		expect("203.0.113.4", 200)
		if output, err := fleet[0].RateLimit("ban", "clients", "203.0.113.0/240"); err == nil {
			t.Errorf("a network that is none is banned: %s", output)
		}
	})
}
