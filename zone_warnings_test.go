package caddyratelimit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// site is a Caddyfile with a zone that has some options.
func site(zone string) string {
	return "{\n}\nhttp://localhost {\nrate_limit {\nzone z {\nevents 10\nwindow 1m\n" + zone + "\n}\n}\nrespond ok\n}\n"
}

// warnedZone has the options of a zone.
type warnedZone struct {
	zone string
	want string // of the one warning; "" for none
}

// warnedZones are zones that loading warns about, and others like them.
func warnedZones() map[string]warnedZone {
	return map[string]warnedZone{
		"client":                   {zone: "key {client_ip}"},
		"no key":                   {},
		"constant":                 {zone: "key everybody"},
		"forgotten braces":         {zone: "key client_ip", want: `key "client_ip" is a constant, so all clients share one limit; did you mean {client_ip}, in JSON {http.vars.client_ip}?`},
		"forgotten braces, long":   {zone: "key http.request.host", want: `did you mean {host}, in JSON {http.request.host}?`},
		"forgotten braces, header": {zone: "key header.X-Api-Key", want: `did you mean {header.X-Api-Key}, in JSON {http.request.header.X-Api-Key}?`},
		"old name":                 {zone: "key remote_ip", want: `did you mean {client_ip}, in JSON {http.vars.client_ip}?`},
		"query":                    {zone: "key {uri}", want: "any client can write the query string, and gets a new limit with each value; use {path}, in JSON {http.request.uri.path}"},
		"query beside":             {zone: `key "{client_ip} {query}"`, want: "use {path}"},
		"one parameter":            {zone: "key {query.key}"},
		"browser":                  {zone: `key "{client_ip} {header.User-Agent}"`, want: "leave it out of the key"},
		"browser alone":            {zone: "key {header.User-Agent}"},
		"long prefix":              {zone: "key {client_ip}\nipv6_prefix 65", want: "set ipv6_prefix 64 or less"},
		"a network":                {zone: "key {client_ip}\nipv6_prefix 64"},
		"long prefix, no address":  {zone: "key {header.X}\nipv6_prefix 128"},
		"environment":              {zone: "key {env.HOME}", want: `key "{env.HOME}" is a constant, so all clients share one limit`},
		"body":                     {zone: "key {http.request.body}", want: "any client can write the body of a request, which may contain a password, and gets a new limit with each value; match a part of it with vars_regexp"},
		"fields of a body":         {zone: "key {http.rate_limit.json.id}", want: `any client can write fields of a body, and gets a new limit with each value; write {client_ip}, in JSON {http.vars.client_ip}, before it`},
		"fields of a body, beside": {zone: `key "{client_ip} {http.rate_limit.json.id}"`},
		"key by a proxy's header":  {zone: "key {header.X-Forwarded-For}", want: `key "{http.request.header.X-Forwarded-For}": any client can write header X-Forwarded-For, and gets a new limit with each value; set trusted_proxies and client_ip_headers in the global servers option, and use {client_ip}`},
		"key with such a header":   {zone: `key "{path} {header.cf-connecting-ip}"`, want: "header Cf-Connecting-Ip"},
		"key by another header":    {zone: "key {header.X-Api-Key}"},
		"exempt by a header":       {zone: "exempt header X-Monitoring yes", want: "exempt matches a header that any client can send, X-Monitoring;"},
		"exempt by a secret":       {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc"},
		"exempt by a beginning":    {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc*", want: "X-Monitoring"},
		"exempt by both":           {zone: "exempt {\nheader X-Monitoring yes\nremote_ip 192.0.2.0/24\n}"},
	}
}

// TestWarningsAtLoad: options that do not do what they seem to do are warned about, once each, with
// the zone and what to write instead.
func TestWarningsAtLoad(t *testing.T) {
	for name, c := range warnedZones() {
		warnings, err := caddytest.Validate(t, site(c.zone))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := 1
		if c.want == "" {
			want = 0
		}
		if len(warnings) != want {
			t.Errorf("%s: %d warnings, want %d: %v", name, len(warnings), want, warnings)
			continue
		}
		if want == 1 && (!strings.Contains(warnings[0].Message, c.want) || warnings[0].ContextMap()["zone"] != "z") {
			t.Errorf("%s: got %q of zone %v, want %q", name, warnings[0].Message, warnings[0].ContextMap()["zone"], c.want)
		}
	}
}

// TestDoctorRepeatsWarnings: while a config runs, doctor says all that was warned of when it was loaded. The configs are
// all those of other tests that have warnings.
func TestDoctorRepeatsWarnings(t *testing.T) {
	configs := make(map[string]string)
	for name, c := range warnedZones() {
		if c.want != "" {
			configs[name] = site(c.zone)
		}
	}
	for _, c := range caddytest.ConfigCases(t, "") {
		if strings.Contains(c.Want, " | warn: ") {
			config, err := c.JSON()
			if err != nil {
				t.Fatal(err)
			}
			configs[c.Name] = string(config)
		}
	}
	for name, config := range configs {
		warnings := strings.Split(warned(caddytest.RunConfig(t, caddytest.FreeAddress(t), config).All()), "\n")
		said := caddytest.Admin(t, http.MethodGet, "doctor", "")
		for _, text := range warnings {
			found, fix := advice.Split(text)
			for _, part := range []string{found, fix.String()} {
				if quoted, _ := json.Marshal(part); !strings.Contains(said, strings.Trim(string(quoted), `"`)) {
					t.Errorf("%s: %q is missing in %s", name, part, said)
				}
			}
		}
		if len(warnings) < 2 { // the last one is empty
			t.Errorf("%s: no warning", name)
		}
	}
}

// TestWaitsAndTimeouts: a wait that is longer than the server has for a request is warned about.
func TestWaitsAndTimeouts(t *testing.T) {
	const said = "requests may wait here for 10s, but the server has 5s for them (timeouts %s), so some are charged and get no answer; " +
		"set %[1]s, in JSON %s, to more than 10s, or max_wait to less than 5s"
	for timeouts, jsonName := range map[string]string{
		"read_body 5s": "read_timeout", "write 5s": "write_timeout", "read_body_idle 5s 100": "read_idle_timeout", "write_idle 5s 100": "write_idle_timeout",
		"read_body 10001ms": "", "write 1h": "", "read_body_idle 5s": "", "write_idle 5s": "", "idle 5s": "", "read_header 5s": "", "read_body_idle -1s 100": "",
	} {
		for zone, waits := range map[string]bool{
			"max_wait 10s": true, "algorithm leaky_bucket\nmode queue\nmax_wait 10s": true,
			"algorithm concurrency\nmax_wait 10s": true, "algorithm leaky_bucket 10/10s\nmode queue\nburst 10": true,
			"plan {host} {\nslow {\nmax_wait 10s\n}\ndefault slow\n}": true, "max_wait 10s\nenforce 0": false, "max_wait 2s": false, "": false,
		} {
			config := strings.Replace(site(zone), "{\n", "{\nservers {\ntimeouts {\n"+timeouts+"\n}\n}\n", 1)
			if strings.Contains(zone, "10/10s") {
				config = strings.Replace(config, "events 10\nwindow 1m\n", "", 1)
			}
			if strings.Contains(zone, "concurrency") {
				config = strings.Replace(config, "window 1m\n", "", 1)
			}
			warnings, err := caddytest.Validate(t, config)
			if err != nil {
				t.Errorf("%s, %s: %v", timeouts, zone, err)
				continue
			}
			name, _, _ := strings.Cut(timeouts, " ")
			want := fmt.Sprintf(said, name, jsonName)
			if jsonName == "" || !waits {
				want = ""
			}
			got := ""
			for _, w := range warnings {
				got += w.Message
			}
			if got != want {
				t.Errorf("%s, %s: got %q, want %q", timeouts, zone, got, want)
			}
		}
	}
}
