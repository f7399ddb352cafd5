package caddyratelimit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// TestReplayBehindAProxy: the client is the one that a Caddy with the config would find out from the
// connection and the header, whatever the Caddy that wrote the log trusted. Where the log cannot tell, or
// the config does not trust the proxy, the client is taken as logged, and the report says so.
func TestReplayBehindAProxy(t *testing.T) {
	const (
		trusts = `"trusted_proxies": {"source": "static", "ranges": ["10.0.0.5"]}, "trusted_proxies_strict": 1,`
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
		{"its first address counts without strict", strings.Split(trusts, `"trusted_proxies_strict`)[0], "10.0.0.5", `"X-Forwarded-For":["192.0.2.%d, 10.9.9.9"]`, "192.0.2.1 192.0.2.2", ""},
		{"another field", trusts + `"client_ip_headers": ["cf-connecting-ip"],`, "10.0.0.5", `"Cf-Connecting-Ip":["198.51.100.%d"]`, "198.51.100.1 198.51.100.2", ""},
		{"another proxy is trusted", strings.Replace(trusts, "10.0.0.5", "10.0.0.6", 1), "198.51.100.7", `"X-Forwarded-For":["198.51.100.%d"]`, "10.0.0.5", "all requests are from 10.0.0.5 and carry X-Forwarded-For"},
		{"no proxy is trusted", "", "10.0.0.5", `"X-Forwarded-For":["198.51.100.%d"]`, "10.0.0.5", "all requests are from 10.0.0.5 and carry X-Forwarded-For; the client is taken as logged: if that is a proxy, set trusted_proxies"},
		{"the field is not in the log", trusts, "10.0.0.5", `"X":["%d"]`, "10.0.0.5", "all requests are from 10.0.0.5, and the log does not tell for whom; the client is taken as logged"},
		{"the field is redacted", trusts, "198.51.100.7", `"X-Forwarded-For":["REDACTED"],"X":["%d"]`, "198.51.100.7", ""},
		{"the log knows more than the config", "", "198.51.100.7", `"X":["%d"]`, "198.51.100.7", "requests have come through a proxy, and the config has no trusted_proxies (6 requests)"},
	} {
		var log strings.Builder
		for i := range 6 {
			log.WriteString(line(i, c.client, strings.ReplaceAll(c.forwarded, "%d", fmt.Sprint(1+i/4))))
		}
		for _, wait := range []string{"", `, "max_wait": "1ms"`} { // walks of their own
			config := strings.Replace(string(replayConfig(`"clients": {"key": "{http.vars.client_ip}", "max_events": 100, "window": "1h"`+wait+`}`)), `"listen"`, c.server+`"listen"`, 1)
			r, err := admin.AdminAPI{}.Replay([]byte(config), &replay.Options{Logs: []string{"-"}, Input: strings.NewReader(log.String())})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Zones[0].PeakKeys, " "); got != c.keys || r.Clients != len(strings.Fields(c.keys)) {
				t.Errorf("%s: the keys are %s of %d clients, want %s", c.name, got, r.Clients, c.keys)
			}
			said := ""
			for _, u := range r.Unknown {
				if strings.Contains(u.Assumed, "as logged") {
					said = u.Sentence()
				}
			}
			if !strings.HasPrefix(said, c.unknown) || c.unknown == "" && said != "" {
				t.Errorf("%s: the report says %q, want %q", c.name, said, c.unknown)
			}
		}
	}
}
