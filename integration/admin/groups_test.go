package admin_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestGroups: three user agents hide among random ones, at changing addresses. top --groups lists these and no others, whatever
// the zone decides about the requests, and begins to count again with another placeholder.
func TestGroups(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		config := harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
			rate_limit {
				zone lent {
					key {client_ip}
					rate 100000/1h
					group {header.User-Agent}
					lend 100ms
				}
				zone paid {
					key all
					group {header.User-Agent}
					plan {header.Plan} {
						free 100000/1h
						default free
					}
				}
				zone trial {
					key {client_ip}
					rate 1/1h
					group {header.User-Agent}
					dry_run
				}
				zone exempt {
					key {client_ip}
					rate 1/1h
					group {header.User-Agent}
					exempt method GET
				}
				zone other {
					key {client_ip}
					rate 100000/1h
				}
				`+store+`
			}
			respond ok`)
		s, client := harness.StartCaddy(t, config), harness.NewClient(t, "")
		groups := func(line ...string) string {
			t.Helper()
			output, err := s.RateLimit(append([]string{"top", "--groups"}, line...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			return output
		}
		if output := groups(); !strings.Contains(output, "No group has 1 % of the requests, or counting has just begun") {
			t.Errorf("at first: %s", output)
		}
		const each, others = 20, 240
		hidden := []string{"bot (1.0)", "", strings.Repeat("x", 300)}
		var agents []string
		for range each {
			agents = append(agents, hidden...)
		}
		for range others {
			agents = append(agents, fmt.Sprint("browser ", rand.Uint64()))
		}
		rand.Shuffle(len(agents), func(i, j int) { agents[i], agents[j] = agents[j], agents[i] })
		for i, agent := range agents {
			s.Get(client, "/", "User-Agent", agent, "X-Forwarded-For", fmt.Sprint("192.0.2.", i%8))
		}
		for _, zone := range []string{"lent", "paid", "trial", "exempt"} {
			checkGroups(t, groups(zone, "--json"), zone, len(agents), each)
		}
		output := groups("lent")
		for _, want := range []string{"GROUP\n", ` 'bot (1.0)'`, " (none)\n", " " + strings.Repeat("x", 256) + "... (300 bytes)\n"} {
			if !strings.Contains(output, want) {
				t.Errorf("no %q in\n%s", want, output)
			}
		}
		if output, err := s.RateLimit("top", "other", "--groups"); err == nil || !strings.Contains(output, `zone "other" has no groups: write group <placeholder> in it`) {
			t.Errorf("a zone without groups: %v, %s", err, output)
		}
		s.MustLoad(strings.ReplaceAll(config, "group {header.User-Agent}", "group {method}"))
		if output := groups("lent"); !strings.Contains(output, "counting has just begun") {
			t.Errorf("after a config with another placeholder: %s", output)
		}
		s.Get(client, "/")
		if output := groups("lent"); !strings.Contains(output, " GET\n") {
			t.Errorf("by method: %s", output)
		}
		s.MustLoad(strings.ReplaceAll(config, "group {header.User-Agent}", ""))
		if output := groups(); output != "No zone has the option group.\n" {
			t.Errorf("after a config without groups: %s", output)
		}
	})
}

// checkGroups checks a list of three groups, among random ones.
func checkGroups(t *testing.T, text, zone string, all, each int) {
	t.Helper()
	var list adminapi.Groups
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("zone %s: %v\n%s", zone, err, text)
	}
	if list.Zone != zone || list.By != "{http.request.header.User-Agent}" || list.Requests != uint64(all) || len(list.Groups) != 3 {
		t.Errorf("zone %s: %d requests of %d, %d groups of 3 by %s", zone, list.Requests, all, len(list.Groups), list.By)
	}
	for _, c := range list.Groups {
		least, most := uint64(0), uint64(0)
		if zone == "trial" { // the first request of each address passes
			least, most = uint64(each-8), uint64(each)
		}
		if c.Requests != uint64(each) || c.Error != 0 || c.Refused < least || c.Refused > most || c.Keys > 10 || c.Truncated != 0 && c.Truncated != 300 {
			t.Errorf("zone %s: %+v", zone, c)
		}
	}
}
