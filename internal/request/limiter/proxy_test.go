package limiter_test

import (
	"cmp"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestUntrustedProxy: requests through a proxy that Caddy does not trust are warned about, once a
// minute however many there are.
func TestUntrustedProxy(t *testing.T) {
	for name, c := range map[string]struct {
		key, field string
		remote     string // 192.0.2.7 if empty
		fix        string
		client     string // 192.0.2.7 if empty
		others     bool   // one of four clients is behind a proxy of its own
		trusted    bool
		lines      int
	}{
		"untrusted":              {key: "{http.vars.client_ip}", field: "X-Forwarded-For", lines: 2},
		"Unix socket":            {key: "{http.vars.client_ip}", field: "X-Forwarded-For", remote: "@", fix: "set trusted_proxies_unix", lines: 2},
		"Cloudflare":             {key: "{http.vars.client_ip} {http.request.uri.path}", field: "CF-Connecting-IP", lines: 2},
		"RFC 7239":               {key: "{http.request.remote.host}", field: "Forwarded", fix: "have it send X-Forwarded-For", lines: 2},
		"trusted":                {key: "{http.vars.client_ip}", field: "X-Forwarded-For", client: "203.0.113.9", trusted: true},
		"trusted, mapped":        {key: "{http.vars.client_ip}", field: "X-Forwarded-For", client: "::ffff:203.0.113.9", trusted: true},
		"a CDN before it":        {key: "{http.vars.client_ip}", field: "X-Forwarded-For", trusted: true, lines: 2},
		"a few before it":        {key: "{http.vars.client_ip}", field: "X-Forwarded-For", client: "203.0.113.9", others: true, trusted: true},
		"trusted, but not asked": {key: "{http.request.remote.host}", field: "X-Forwarded-For", fix: "use {client_ip} in the key", trusted: true, lines: 2},
		"no proxy":               {key: "{http.vars.client_ip}", field: "X-Other"},
		"not by address":         {key: "{http.request.header.X-Api-Key}", field: "X-Forwarded-For"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, logs := caddytest.Logged(t)
			h := caddytest.LoadInto(t, ctx, `{"rate_limits": {"z": {"key": "`+c.key+`", "max_events": 5, "window": "1h"}}}`)
			send := func() {
				for i := range 1000 {
					w := httptest.NewRecorder()
					r := caddytest.Request(w, cmp.Or(c.remote, "192.0.2.7:1234"))
					r.Header.Set(c.field, "203.0.113.9")
					if c.others && i%4 == 3 {
						r.Header.Set(c.field, "10.0.0.1, 203.0.113.9")
					}
					caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, cmp.Or(c.client, "192.0.2.7"))
					caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, c.trusted)
					caddytest.Status(h, r)
				}
			}
			send()
			time.Sleep(30 * time.Second)
			send()
			time.Sleep(31 * time.Second)
			send()
			lines := 0
			for _, line := range logs.All() {
				if strings.Contains(line.Message, "all clients behind it share one limit") {
					lines++
					if line.ContextMap()["zone"] != "z" || !strings.Contains(line.Message, cmp.Or(c.remote, "192.0.2.7")) || !strings.Contains(line.Message, cmp.Or(c.fix, "add it to trusted_proxies")) || !strings.Contains(strings.ToLower(line.Message), strings.ToLower(c.field)) {
						t.Errorf("%s: %s %v", name, line.Message, line.ContextMap())
					}
				}
			}
			if lines != c.lines {
				t.Errorf("%s: %d lines, want %d", name, lines, c.lines)
			}
		})
	}
}

// TestUntrustedProxyOfALaterZone: each zone of a request is looked at.
func TestUntrustedProxyOfALaterZone(t *testing.T) {
	ctx, logs := caddytest.Logged(t)
	h := caddytest.LoadInto(t, ctx, `{"rate_limits": {
		"a": {"key": "{http.vars.client_ip}", "max_events": 5, "window": "1h"},
		"b": {"key": "{http.request.remote.host}", "max_events": 5, "window": "1h"}}}`)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "192.0.2.7:1234")
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, true)
	caddytest.Status(h, r)
	lines := logs.FilterMessageSnippet("all clients behind it share one limit").All()
	if len(lines) != 1 || lines[0].ContextMap()["zone"] != "b" {
		t.Errorf("got %v, want a line about zone b", lines)
	}
}
