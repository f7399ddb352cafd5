package cli_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// networkOf is a network in an answer.
type networkOf struct {
	Network                  string
	Requests, Refused, Error int
	Keys                     int
	KeysMost                 int `json:"keys_most"`
}

// TestNetworksOfTheFleet: an attack from one /24 is spread over three instances whose admin endpoints cannot reach one another. Each answers with what the clients have counted, within the bound that it tells.
func TestNetworksOfTheFleet(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	config := harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				key {client_ip}
				rate 2/1h
			}
			`+harness.Redis(server.Addr())+`
		}
		respond ok`)
	all := []*harness.Server{harness.StartCaddy(t, config), harness.StartCaddy(t, config), harness.StartCaddy(t, config)}
	patient.Until(t, "three heartbeats", func() bool {
		return server.Admin().ZCard(t.Context(), "rl:instances").Val() == 3
	})
	ask := func(s *harness.Server, path string) (answers int, list []networkOf) {
		t.Helper()
		text, err := s.Admin("GET", "/rate_limit/"+path, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Instances []instance
			Networks  []struct{ Networks []networkOf }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, i := range answer.Instances {
			if i.Answer != nil {
				answers++
			}
		}
		for _, zone := range answer.Networks {
			list = append(list, zone.Networks...)
		}
		return answers, list
	}
	patient.Until(t, "all to count", func() bool {
		answers, _ := ask(all[0], "networks?fleet=1")
		return answers == 3
	})

	client := harness.NewClient(t, "")
	sent, refused := 0, 0
	for i := range 130 { // each of 13 addresses comes ten times, to all instances
		sent++
		if all[i%3].Get(client, "/", "X-Forwarded-For", fmt.Sprint("203.0.113.", i%13*19)).Status == 429 {
			refused++
		}
		all[i%3].Get(client, "/", "X-Forwarded-For", fmt.Sprintf("%d.%d.0.1", 20+i, i))
	}
	for i, path := range []string{"networks?fleet=1&share=0.2", "zones/clients/networks?fleet=1&share=0.2"} {
		var last []networkOf
		patient.Until(t, "the sums of "+path, func() bool {
			_, last = ask(all[i%2], path)
			for _, n := range last {
				if n.Network == "203.0.113.0/24" {
					return n.Requests <= sent && sent <= n.Requests+n.Error && n.Refused <= refused && refused <= n.Refused+n.Error &&
						n.Error <= sent/10 && n.Keys <= 13*2 && n.KeysMost > n.Keys
				}
			}
			return false
		})
	}
	for line, want := range map[string]string{
		"top --networks":                       `KEYS +BEFORE +NETWORK\nclients +130 +104 +about [\d.]+ +- +203\.0\.113\.0/24\n\nCounted by 3 instances since `,
		"top clients --networks --fleet=false": `(?s)clients(.*)Counted by this instance`,
	} {
		output, err := all[2].RateLimit(strings.Fields(line)...)
		if err != nil || !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("%s: want %s in\n%v %s", line, want, err, output)
		}
		if strings.Contains(line, "=false") && regexp.MustCompile(`clients +(10|130) `).MatchString(output) {
			t.Errorf("%s: the sums of all:\n%s", line, output)
		}
	}
}
