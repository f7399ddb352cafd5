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

// TestBannedGroups: a ban, a limit or an exemption of a group holds for all addresses in requests of the group, at all instances with
// the same store and after a reload. The override of an address, and that of a network, go before it. Without the option
// group, or with another placeholder, it has no effect.
func TestBannedGroups(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		config := func(group string) string {
			return harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
			rate_limit {
				zone clients {
					key {client_ip}
					rate 2/1h
					overrides
					exempt header User-Agent monitor
					`+group+`
				}
				zone trial {
					key {client_ip}
					rate 100/1h
					overrides
					dry_run
					match header Trial yes
					group {header.User-Agent}
				}
				zone paths {
					key {path}
					rate 100/1h
					overrides
					match header Trial yes
					group {header.User-Agent}
				}
				zone plain {
					key {client_ip}
					rate 100/1h
					overrides
					match header Trial yes
				}
				`+store+`
			}
			respond ok`)
		}
		const byAgent = "group {header.User-Agent}"
		fleet := []*harness.Server{harness.StartCaddy(t, config(byAgent))}
		if store != harness.Memory {
			fleet = append(fleet, harness.StartCaddy(t, config(byAgent)))
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
		get := func(s *harness.Server, address, agent string, more ...string) harness.Answer {
			return s.Get(client, "/", append([]string{"X-Forwarded-For", address, "User-Agent", agent}, more...)...)
		}
		addresses := 0
		expect := func(agent string, status int) {
			t.Helper()
			for _, s := range fleet {
				patient.Until(t, fmt.Sprintf("%q gets %d", agent, status), func() bool {
					addresses++ // a new one, whose own limit refuses nothing
					return get(s, fmt.Sprintf("10.1.%d.%d", addresses/250, addresses%250), agent).Status == status
				})
			}
		}
		run("ban|clients|--group|bad bot/1.0|--for|1h|--note|scrapes")
		expect("bad bot/1.0", 429)
		if a := get(fleet[0], "203.0.113.2", "bad bot/1.0"); !regexp.MustCompile(`^3[56]\d\d$`).MatchString(a.Header.Get("Retry-After")) {
			t.Errorf("Retry-After: %q, want nearly an hour", a.Header.Get("Retry-After"))
		}
		expect("bad bot/1.1", 200)
		expect("", 200)
		expect("monitor", 200)
		run("ban|clients|--group|monitor")
		run("ban|trial|--group|x")
		if a := get(fleet[0], "203.0.113.3", "x", "Trial", "yes"); a.Status != http.StatusOK {
			t.Errorf("a dry run answers %d", a.Status)
		}
		expect("monitor", 200) // exempt goes first

		// The override of an address and that of a network go before that of a group.
		run("set|clients|203.0.113.4|--exempt")
		run("set|clients|198.51.100.0/24|5/1h")
		for _, s := range fleet {
			for _, address := range []string{"203.0.113.4", "198.51.100.7"} {
				patient.Until(t, address+" passes", func() bool { return get(s, address, "bad bot/1.0").Status == http.StatusOK })
			}
		}
		run("set|clients|203.0.113.4|--clear")
		patient.Until(t, "the group decides again", func() bool { return get(fleet[len(fleet)-1], "203.0.113.4", "bad bot/1.0").Status == 429 })

		run("set|clients|--group|wide|9/1h")
		last := fleet[len(fleet)-1]
		patient.Until(t, "all instances have the limit", func() bool {
			return strings.Contains(get(last, "203.0.113.5", "wide").Header.Get("RateLimit-Policy"), "q=9")
		})
		if a := get(last, "203.0.113.6", "wide"); a.Status != http.StatusOK || !strings.Contains(a.Header.Get("RateLimit"), "r=8") {
			t.Errorf("another address has not the limit for itself: %d, %q", a.Status, a.Header.Get("RateLimit"))
		}
		run("ban|clients|--group-base64|gP8=") // two bytes that are not UTF-8
		expect("\x80\xff", 429)

		explain := func(agent string) string {
			return run("explain|--header|X-Forwarded-For: 203.0.113.9|--header|User-Agent: " + agent + "|" + fleet[0].URL("/"))
		}
		for line, want := range map[string]string{
			"bans|clients":      `operator  .* [1-9]\d* requests, note: scrapes +\{header\.User-Agent\} 'bad bot/1\.0'\n`,
			"overrides|clients": `9/1h until it is cleared.* +\{header\.User-Agent\} wide\n`,
		} {
			if output := run(line); !regexp.MustCompile(want).MatchString(output) {
				t.Errorf("%s:\n%s\nwant %s", line, output, want)
			}
		}
		for agent, want := range map[string]string{
			"bad bot/1.0": `its group \{header\.User-Agent\} "bad bot/1\.0" is banned`,
			"wide":        `9/1h as all of its group \{header\.User-Agent\} wide`,
		} {
			if output := explain(agent); !regexp.MustCompile(want).MatchString(output) {
				t.Errorf("explain %s:\n%s\nwant %s", agent, output, want)
			}
		}
		for _, line := range []string{
			"ban|clients|--group|", "ban|clients|203.0.113.1|--group|x", "ban|plain|--group|x", "ban|paths|--group|x",
			"ban|clients|--group|" + strings.Repeat("x", 1025), "set|clients|--group|x", "ban|clients|--group|x|--group-base64|eA==",
		} {
			if output, err := fleet[0].RateLimit(strings.Split(line, "|")...); err == nil {
				t.Errorf("%.60s: %s", line, output)
			}
		}

		fleet[0].MustLoad(config(""))
		if a := get(fleet[0], "203.0.113.11", "bad bot/1.0"); a.Status != http.StatusOK {
			t.Errorf("without groups: %d", a.Status)
		}
		fleet[0].MustLoad(config("group {header.Referer}"))
		if a := get(fleet[0], "203.0.113.12", "bad bot/1.0", "Referer", "bad bot/1.0"); a.Status != http.StatusOK {
			t.Errorf("with another placeholder: %d", a.Status)
		}
		if output := run("bans|clients"); !strings.Contains(output, "no effect: the zone does not group by this placeholder") {
			t.Errorf("bans with another placeholder: %s", output)
		}
		fleet[0].MustLoad(config(byAgent))
		if a := get(fleet[0], "203.0.113.13", "bad bot/1.0"); a.Status != http.StatusTooManyRequests {
			t.Errorf("after a reload: %d", a.Status)
		}
		run("unban|clients|--group|bad bot/1.0")
		expect("bad bot/1.0", 200)
	})
}
