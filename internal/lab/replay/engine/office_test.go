package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
)

// TestReplaySuggestsNoOffice: no limit is suggested that refuses people who share an address, in logs with and without cookies.
func TestReplaySuggestsNoOffice(t *testing.T) {
	inJSON := func(cookie string) func(client, agent, uri string, status int) string {
		return func(client, agent, uri string, status int) string {
			headers := fmt.Sprintf(`"headers":{"User-Agent":[%q]%s}`, agent, cookie)
			return strings.Replace(logLineOf(noon, 0.001, client, uri, status), `"headers":{}`, headers, 1)
		}
	}
	for name, line := range map[string]func(client, agent, uri string, status int) string{
		"JSON":                 inJSON(`,"Cookie":["REDACTED"]`),
		"JSON without cookies": inJSON(""),
		"combined": func(client, agent, uri string, status int) string {
			return fmt.Sprintf("%s - - [20/Nov/2026:12:00:00 +0000] \"GET %s HTTP/2.0\" %d 1 \"-\" %q\n", client, uri, status, agent)
		},
	} {
		var log strings.Builder
		person := func(client, agent string) {
			log.WriteString(line(client, agent, "/", 200) + line(client, agent, "/a.css", 200) + line(client, agent, "/b.css", 304))
		}
		for i := range 4000 {
			person(fmt.Sprintf("198.51.%d.%d", i/250, i%250), "Firefox")
		}
		for i := range 12 {
			person(fmt.Sprintf("203.0.113.1%d", i%3), fmt.Sprint("Firefox ", i))
		}
		for range 100 {
			log.WriteString(line("203.0.113.7", "curl", "/api", 200))
		}
		s := replayed(t, clients100, log.String(), replay.Options{Suggest: true}).Zones[0].Suggestion
		reasons := strings.Join(s.Reasons, "; ")
		if s.Limit != "15/1m" || !strings.Contains(reasons, "and all 3 that look like several, used at most 12/1m") ||
			!strings.Contains(reasons, "look at who is above it: 203.0.113.7") {
			t.Errorf("%s: %s is suggested, want 15/1m, which refuses only 203.0.113.7: %s", name, s.Limit, reasons)
		}
	}
}

// TestFewClients: where nearly all of the failures are of one client, the limits to try are those of the others, and none is
// above what everybody used.
func TestFewClients(t *testing.T) {
	var log strings.Builder
	for i := range 300 {
		log.WriteString(logLine(noon+float64(i)/10, "203.0.113.7", "/login"))
		if i < 14 {
			log.WriteString(logLine(noon+float64(i), fmt.Sprintf("198.51.100.%d", i), "/login"))
		}
	}
	z := replayed(t, clients100, log.String(), replay.Options{Suggest: true}).Zones[0]
	var tried []string
	for _, w := range z.WhatIf {
		tried = append(tried, w.Limit)
	}
	if got, want := fmt.Sprint(tried), "[1/1m 2/1m 4/1m 8/1m 100/1m]"; got != want {
		t.Errorf("it tries %s, want %s", got, want)
	}
	log.Reset()
	for i := range 5 {
		log.WriteString(logLine(noon, fmt.Sprintf("198.51.100.%d", i), "/"))
	}
	if z = replayed(t, clients100, log.String(), replay.Options{Suggest: true}).Zones[0]; len(z.WhatIf) != 2 || z.WhatIf[0].Limit != "1/1m" {
		t.Errorf("of clients that sent one request: %+v, want 1/1m and the limit of the config", z.WhatIf)
	}
}
