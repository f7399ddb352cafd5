//go:build deep

package caddyratelimit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// wrongAdvice are ways in which a config can be wrong that seem right, and what follows the advice.
func wrongAdvice(t *testing.T) map[string]advised {
	const (
		proxied = "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n"
		byURL   = "route {\nrate_limit {\nzone z {\nrate 3/1h\nkey %\n}\n}\nrespond ok\n}"
		charged = "rate_limit {\nzone z {\nrate 3/1h\nkey {client_ip}\ncharge {\nstatus %\n}\n}\n}\nrespond 200"
	)
	server := redistest.Start(t, redistest.WithArgs("--maxmemory", "1gb", "--maxmemory-policy", "noeviction"))
	shared := "store redis {\naddress " + server.Addr() + "\n}\n"
	sites := func(store string) string {
		return "route /a* {\nrate_limit {\n" + shared + "zone a {\nrate 100/1h\nkey {client_ip}\n}\n}\nrespond ok\n}\n" +
			"route /b* {\nrate_limit {\n" + store + "zone b {\nrate 3/1h\nkey {client_ip}\n}\n}\nrespond ok\n}"
	}
	with := func(text, value string) string { return strings.Replace(text, "%", value, 1) }
	good := limited("key {client_ip}") + "respond ok"
	admitted := shares{200: 20}
	return map[string]advised{
		"a key with the query string": {
			site: with(byURL, "{uri}"), fixed: with(byURL, "{path}"), visits: each(20, "/search?q={n}"),
			told: "load", advice: "load/key/query", before: admitted,
		},
		"a key with what browsers say": {
			site: limited("key \"{client_ip} {header.User-Agent}\"") + "respond ok", fixed: good, visits: each(20, "/", "User-Agent", "curl/{n}"),
			told: "load", advice: "load/key/browser", before: admitted,
		},
		"addresses of IPv6 by themselves": {
			global: proxied, site: limited("key {client_ip}\nipv6_prefix 128") + "respond ok",
			then: proxied, fixed: limited("key {client_ip}\nipv6_prefix 64") + "respond ok",
			visits: each(20, "/", "X-Forwarded-For", "2001:db8::{n}"),
			told:   "load", advice: "load/key/prefix", before: admitted,
		},
		"one site without the shared store": {
			site: sites(""), fixed: sites(shared), visits: slices.Concat(each(20, "/a"), each(20, "/b")),
			told: "doctor", advice: "doctor/store", before: shares{200: 23, 429: 17}, after: shares{200: 23, 429: 17}, // in each instance, and then in all together
		},
		"a charge for responses that never come": {
			site: with(charged, "401"), fixed: with(charged, "200"), visits: byClients(25, each(100, "/")),
			told: "doctor", advice: "doctor/charge", before: shares{200: 100}, after: shares{200: 75, 429: 25},
		},
	}
}

// proxyAdvice are the set-ups whose proxies are not trusted, or whose keys do not have the client's address.
func proxyAdvice() map[string]advised {
	const strict = "servers {\ntrusted_proxies static %\ntrusted_proxies_strict\n}\n"
	proxied, other := strings.Replace(strict, "%", "127.0.0.0/8", 1), strings.Replace(strict, "%", "10.0.0.1", 1)
	good, byRemote := limited("key {client_ip}")+"respond ok", limited("key {remote_host}")+"respond ok"
	visits := each(20, "/", "X-Forwarded-For", "2001:db8:0:{n}::1")
	admitted, held := shares{200: 20}, shares{200: 3, 429: 17}
	return map[string]advised{
		"a proxy that is not trusted": {
			site: good, fixed: good, then: proxied, visits: visits,
			told: "log", advice: "proxy/strict", before: held, after: admitted,
		},
		"a proxy with a header of its own": {
			site: good, fixed: good, then: "servers {\ntrusted_proxies static 127.0.0.0/8\nclient_ip_headers CF-Connecting-IP\n}\n",
			visits: each(20, "/", "CF-Connecting-IP", "2001:db8:0:{n}::1"),
			told:   "log", advice: "proxy/header", before: held, after: admitted,
		},
		"a proxy that sends what Caddy does not read": {
			site: good, fixed: good, then: proxied, visits: each(20, "/", "Forwarded", "for=192.0.2.{n}"), later: visits,
			told: "log", advice: "proxy/forwarded", before: held, after: admitted,
		},
		"a proxy beside a trusted one": {
			global: other, site: good, fixed: good, then: proxied, visits: visits,
			told: "log", advice: "proxy/trust", before: held, after: admitted,
		},
		"a key of the connection": {
			site: byRemote, fixed: good, then: proxied, visits: visits,
			told: "log", advice: "proxy/key", before: held, after: admitted,
		},
		"a key of a trusted connection": {
			global: proxied, site: byRemote, fixed: good, then: proxied, visits: visits,
			told: "log", advice: "proxy/key/trusted", before: held, after: admitted,
		},
		"a socket that is not trusted": {
			site: good, fixed: good, then: "servers {\ntrusted_proxies_unix\ntrusted_proxies_strict\n}\n", visits: visits, socket: true,
			told: "log", advice: "proxy/socket", before: held, after: admitted,
		},
	}
}
