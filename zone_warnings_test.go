package caddyratelimit_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// site is a Caddyfile with a zone that has some options, behind and before other directives.
func site(before, zone, after string) string {
	return "{\n\torder rate_limit before basic_auth\n}\nhttp://localhost {\n" + before +
		"\nrate_limit {\nzone z {\nevents 10\nwindow 1m\n" + zone + "\n}\n}\n" + after + "\nrespond ok\n}\n"
}

// TestWarningsAtLoad: options that do not do what they seem to do are warned about, once each, with
// the zone and what to write instead.
func TestWarningsAtLoad(t *testing.T) {
	const user = "basic_auth {\nbob $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n}"
	for name, c := range map[string]struct {
		before, zone, after string
		want                string // of the one warning; "" for none
	}{
		"client":                   {zone: "key {client_ip}"},
		"no key":                   {},
		"constant":                 {zone: "key everybody"},
		"forgotten braces":         {zone: "key client_ip", want: `key "client_ip" is a constant, so all clients share one limit; did you mean {http.vars.client_ip}?`},
		"forgotten braces, long":   {zone: "key http.request.host", want: `did you mean {http.request.host}?`},
		"forgotten braces, header": {zone: "key header.X-Api-Key", want: `did you mean {http.request.header.X-Api-Key}?`},
		"old name":                 {zone: "key remote_ip", want: `did you mean {http.vars.client_ip}?`},
		"environment":              {zone: "key {env.HOME}", want: `key "{env.HOME}" is the same for all requests`},
		"body":                     {zone: "key {http.request.body}", want: "the key holds the body of requests"},
		"user, behind":             {zone: "key {http.auth.user.id}", after: user, want: "authentication comes after rate_limit"},
		"user, before":             {before: "route {\n" + user + "\nrate_limit {\nzone y {\nevents 1\nwindow 1m\nkey {http.auth.user.id}\n}\n}\n}"},
		"user, nobody":             {zone: "key {http.auth.user.id}", want: "nothing in this config authenticates users"},
		"variable":                 {before: "vars tenant {header.Tenant}", zone: "key {vars.tenant}"},
		"map":                      {before: "map {host} {tier} {\ndefault free\n}", zone: "key {tier}"},
		"allowed":                  {zone: "key {json.username}\nallow_unknown_placeholders"},
		"fallback":                 {zone: "cost {vars.tokens} 1", want: "cost: nothing in this config sets this placeholder, so that the fallback always holds"},
		"cost":                     {zone: "cost {vars.x}", want: "cost: nothing in this config sets this placeholder, so that all requests are refused"},
		"burst":                    {zone: "algorithm token_bucket\nburst {quota}", want: "burst: nothing in this config sets this placeholder"},
		"plan":                     {zone: "plan {vars.plan} {\nfree 1/1m\ndefault free\n}", want: `plan "{http.vars.plan}": nothing in this config sets this placeholder, so that no request has a plan of its own`},
		"exempt by a header":       {zone: "exempt header X-Monitoring yes", want: "exempt matches a header field that any client can send, X-Monitoring;"},
		"exempt by a secret":       {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc"},
		"exempt by a beginning":    {zone: "exempt header X-Monitoring 3fa85f6457174562b3fc*", want: "X-Monitoring"},
		"exempt by both":           {zone: "exempt {\nheader X-Monitoring yes\nremote_ip 192.0.2.0/24\n}"},
	} {
		warnings, err := caddytest.Validate(t, site(c.before, c.zone, c.after))
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

// TestPlaceholdersThatNothingSets are errors, with the placeholder that was most likely meant.
func TestPlaceholdersThatNothingSets(t *testing.T) {
	for zone, want := range map[string]string{
		"key {json.username}": `zone "z": key "{json.username}": nothing in this config sets {json.username}, so that all clients share one limit (if something does, set allow_unknown_placeholders)`,
		"key {client.ip}":     `did you mean {http.vars.client_ip}?`,
		"key {vars.tenat}":    `did you mean {http.vars.tenant}?`,
	} {
		if _, err := caddytest.Validate(t, site("vars tenant {header.Tenant}", zone, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", zone, err, want)
		}
	}
}
