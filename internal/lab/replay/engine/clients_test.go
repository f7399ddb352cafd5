package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestReplayBehindAProxy: the client is the one that a Caddy with the config would find out from the
// connection and the header, whatever the Caddy that wrote the log trusted. Where the log cannot tell, or
// the config does not trust the proxy, the client in the log counts, and the report says so.
func TestReplayBehindAProxy(t *testing.T) {
	const (
		trusts = `"trusted_proxies": {"source": "static", "ranges": ["10.0.0.5"]}, "trusted_proxies_strict": 1,`
		socket = `"trusted_proxies_unix": true,`
	)
	line := func(i int, client, forwarded string) string {
		made := strings.Replace(logLine(noon+float64(i), client, "/"), fmt.Sprintf(`"remote_ip":%q`, client), `"remote_ip":"10.0.0.5"`, 1)
		return strings.Replace(made, `"headers":{}`, `"headers":{`+forwarded+`}`, 1)
	}
	for _, c := range []struct {
		name, server, client, forwarded string
		keys                            string // of the zone, the busiest first
		unknown                         string
	}{
		{"a proxy that is trusted now", trusts, "10.0.0.5", `"X-Forwarded-For":["192.0.2.9, 198.51.100.%d"]`, "198.51.100.1 198.51.100.2", ""},
		{"another field", trusts + `"client_ip_headers": ["cf-connecting-ip"],`, "10.0.0.5", `"Cf-Connecting-Ip":["198.51.100.%d"]`, "198.51.100.1 198.51.100.2", ""},
		{"no proxy is trusted", "", "10.0.0.5", `"X-Forwarded-For":["198.51.100.%d"]`, "10.0.0.5", "requests carry X-Forwarded-For, the first from 10.0.0.5 (6 requests); the client in the log counts: if that is a proxy, set trusted_proxies"},
		{"the field is not in the log", trusts, "10.0.0.5", `"X":["%d"]`, "10.0.0.5", "all requests come from 10.0.0.5, and the log does not name the clients behind it; the client in the log counts"},
		{"a trusted proxy names itself", trusts, "10.0.0.5", `"X-Forwarded-For":["10.0.0.5"]`, "10.0.0.5", "all requests come from 10.0.0.5, and the log does not name the clients behind it; the client in the log counts"},
		{"a socket that is trusted", socket, "10.0.0.5", `"X-Forwarded-For":["198.51.100.%d"]`, "198.51.100.1 198.51.100.2", ""},
		{"the log knows more than the config", "", "198.51.100.7", `"X":["%d"]`, "198.51.100.7", "requests came through a proxy, and the config has no trusted_proxies (6 requests)"},
	} {
		var log strings.Builder
		for i := range 6 {
			log.WriteString(line(i, c.client, strings.ReplaceAll(c.forwarded, "%d", fmt.Sprint(1+i/4))))
		}
		text := log.String()
		if c.server == socket {
			text = strings.ReplaceAll(text, "10.0.0.5", "@")
		}
		for _, wait := range []string{"", `, "max_wait": "1ms"`} { // walks of their own
			config := strings.Replace(string(replayConfig(`"clients": {"key": "{http.vars.client_ip}", "max_events": 100, "window": "1h"`+wait+`}`)), `"listen"`, c.server+`"listen"`, 1)
			r, err := engine.Replay([]byte(config), &replay.Options{Logs: []string{"-"}, Input: strings.NewReader(text)})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Zones[0].PeakKeys, " "); got != c.keys || r.Clients != len(strings.Fields(c.keys)) {
				t.Errorf("%s: the keys are %s of %d clients, want %s", c.name, got, r.Clients, c.keys)
			}
			said := ""
			for _, u := range r.Unknown {
				if strings.Contains(u, "in the log counts") {
					said = u
				}
			}
			if !strings.HasPrefix(said, c.unknown) || c.unknown == "" && said != "" {
				t.Errorf("%s: the report says %q, want %q", c.name, said, c.unknown)
			}
		}
	}
}

// TestReplayLeavesOutZones: a zone whose key, plan or matcher looks at what the log does not have is not
// judged, and decides nothing for others. The other requests are judged.
func TestReplayLeavesOutZones(t *testing.T) {
	const clients = `"clients": {"key": "{http.vars.client_ip}", "max_events": 3, "window": "1h"}`
	combined := func(_ int) string {
		return `203.0.113.7 - - [20/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	}
	withFields := func(fields string) func(int) string {
		return func(i int) string {
			return strings.Replace(logLine(noon+float64(i), "203.0.113.7", "/"), `"headers":{}`, `"headers":{`+fields+`}`, 1)
		}
	}
	for _, c := range []struct {
		name, zone                string
		line                      func(int) string
		judged, notJudged, passed int64 // passed: requests that come to the zone clients
		why                       string
	}{
		{"a key that is not in the log", `"a": {"key": "{http.request.header.X-Api-Key}", "missing_key": "reject", "max_events": 1, "window": "1h"}`, combined, 0, 8, 8, "header X-Api-Key, which its key needs, is not in the log"},
		{"a matcher", `"a": {"match": [{"not": [{"header": {"X-Staff": ["1"]}}]}], "key": "x", "max_events": 1, "window": "1h"}`, combined, 0, 8, 8, "header X-Staff, which its match needs, is not in the log"},
		{"a matcher of a field of the body", `"a": {"match": [{"vars": {"{http.rate_limit.json.id}": ["1"]}}], "max_events": 1, "window": "1h"}`, combined, 0, 8, 8, "{http.rate_limit.json.id}, which its match needs, is not in the log"},
		{"a placeholder", `"a": {"key": "{http.request.tls.client.subject}", "max_events": 1, "window": "1h"}`, combined, 0, 8, 8, "{tls_client_subject}, which its key needs, is not in the log"},
		{"a redacted key", `"a": {"key": "{http.request.header.Authorization}", "missing_key": "reject", "max_events": 1, "window": "1h"}`, withFields(`"Authorization":["REDACTED"]`), 0, 8, 8, "header Authorization, which its key needs, is redacted in the log"},
		{"a key that is missing", `"a": {"key": "{http.request.header.X-Api-Key}", "missing_key": "reject", "max_events": 1, "window": "1h"}`, withFields(""), 8, 0, 0, ""},
		{"a key that is there", `"a": {"key": "{http.request.header.X-Api-Key}", "max_events": 6, "window": "1h"}`, withFields(`"X-Api-Key":["k"]`), 8, 0, 8, ""},
	} {
		var log strings.Builder
		for i := range 8 {
			log.WriteString(c.line(i))
		}
		r := replayed(t, c.zone+","+clients, log.String(), replay.Options{Tries: []replay.Try{{Zone: "clients", Rate: "2/1h"}}})
		a, z := r.Zones[0], r.Zones[1]
		unjudged := ""
		if c.notJudged > 0 {
			unjudged = fmt.Sprintf("not judged: %s (%d requests)", c.why, c.notJudged)
		}
		if a.Requests != c.judged || a.Unjudged != unjudged {
			t.Errorf("%s: %d requests are judged, and %q, want %d, and %q", c.name, a.Requests, a.Unjudged, c.judged, unjudged)
		}
		if c.passed == 8 && c.judged == 0 && (z.Refused != 5 || z.WhatIf[0].Refused != 6 || z.WhatIf[0].KeysRefused != 1) || c.passed == 0 && z.Refused > 0 {
			t.Errorf("%s: zone clients refuses %d requests and would %+v, want 5 and 6", c.name, z.Refused, z.WhatIf)
		}
		var text strings.Builder
		if err := r.WriteText(&text, time.UTC); err != nil {
			t.Fatal(err)
		}
		if c.why != "" && !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "not judged: "+c.why+" (8 requests)") {
			t.Errorf("%s: the report does not say %q:\n%s", c.name, c.why, text.String())
		}
	}
}

// TestReplayOfAnotherSite: a zone that no request meets is reported as such, with a host of the log.
func TestReplayOfAnotherSite(t *testing.T) {
	const zone = `"clients": {"match": [{"host": ["shop.example"]}], "key": "{http.vars.client_ip}", "max_events": 1, "window": "1m"}`
	log := strings.Replace(logLine(noon, "203.0.113.7", "/"), `"example.com"`, `"\u001b[2J.example"`, 1)
	r := replayed(t, zone, log, replay.Options{Tries: []replay.Try{{Zone: "clients", Rate: "2/1m"}}})
	var text strings.Builder
	if err := r.WriteText(&text, time.UTC); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{`no request met this zone. The first one of the log is for \x1b[2J.example`, "2/1m – –"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, text.String())
		}
	}
}

// TestReplayOnTheServerOfTheHost: a request is replayed on the server that has its host, also where the
// log and the config differ in TLS and so in the port. A server for all hosts has it on its own port, and
// Caddy's redirects to https are no site.
func TestReplayOnTheServerOfTheHost(t *testing.T) {
	const (
		limits   = " {\n\trate_limit {\n\t\tzone clients {\n\t\t\tkey {client_ip}\n\t\t\trate 100/1m\n\t\t}\n\t}\n\trespond ok\n}\n"
		metrics  = ":2020 {\n\tmetrics /metrics\n}\n"
		combined = `203.0.113.7 - - [20/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 1` + "\n"
	)
	line := logLine(noon, "203.0.113.7", "/")
	tls := strings.Replace(line, `"headers":{}`, `"headers":{},"tls":{"version":772,"proto":"h2","server_name":"example.com"}`, 1)
	redirect := strings.Replace(line, `"status":200`, `"status":308`, 1)
	for _, c := range []struct {
		name, config, line string
		met                int64
	}{
		{"without TLS, a log with TLS", "http://example.com" + limits + metrics, tls, 9},
		{"with TLS, redirects to it", "example.com" + limits + metrics, redirect, 0},
		{"a host with a wildcard", "http://*.com" + limits + metrics, tls, 9},
		{"both sites have the host", "http://example.com {\n\trespond ok\n}\nexample.com" + limits, tls, 9},
		{"a site for all hosts on the port", "http://example.com:8443 {\n\trespond ok\n}\n:80" + limits, line, 9},
		{"a site for all hosts on another port", ":2020" + limits + "http://example.com {\n\trespond ok\n}\n", tls, 0},
	} {
		config, _, err := caddytest.Adapt(c.config)
		if err != nil {
			t.Fatal(err)
		}
		r, err := engine.Replay(config, &replay.Options{Logs: []string{"-"}, Input: strings.NewReader(strings.Repeat(c.line, 9))})
		if err != nil {
			t.Fatal(err)
		}
		if z := r.Zones[0]; z.Requests != c.met {
			t.Errorf("%s: %d requests met the zone, want %d", c.name, z.Requests, c.met)
		}
	}
}
