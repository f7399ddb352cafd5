//go:build deep

package caddyratelimit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// limitAdvice are the set-ups whose limits refuse nothing, or everything.
func limitAdvice() map[string]advised {
	const proxied = "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n"
	const enforced = "key {client_ip}"
	good := limited(enforced) + "respond ok"
	chosen := append(each(30, "/", "X-Forwarded-For", "2001:db8:1:{n}::1"), each(20, "/", "X-Forwarded-For", "2001:db8:0:{n}::1, 192.0.2.7")...)
	answer := func(json string) string { return "header Content-Type application/json\nrespond `" + json + "`" }
	charged := "rate_limit {\nzone z {\nrate 30/1h\nkey {client_ip}\ncharge {\njson usage.total_tokens\n}\n}\n}\n"
	admitted, held, all := shares{200: 20}, shares{200: 3, 429: 17}, func(n int) shares { return shares{200: n} }
	return map[string]advised{
		"no zone": {
			site: "rate_limit\nrespond ok", fixed: good,
			advice: "load/zones", before: admitted,
		},
		"no handler": {
			site: "respond ok", fixed: good,
			advice: "doctor/zones", before: admitted,
		},
		"everybody is a proxy": {
			global: "servers {\ntrusted_proxies static 0.0.0.0/0\ntrusted_proxies_strict\n}\n", site: good,
			fixed: good, visits: append(byClients(100, each(100, "/")), each(20, "/", "X-Forwarded-For", "2001:db8:0:{n}::1")...),
			then:   "servers {\ntrusted_proxies static 10.0.0.1\ntrusted_proxies_strict\n}\n",
			advice: "doctor/client_address/everybody", before: all(120), after: shares{200: 103, 429: 17},
		},
		"a proxy that appends": {
			global: "servers {\ntrusted_proxies static 127.0.0.0/8\n}\n", site: good,
			then: "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n", fixed: good, visits: chosen,
			advice: "doctor/client_address/strict", before: all(50), after: shares{200: 33, 429: 17},
		},
		"plans without a limit": {
			site:   "rate_limit {\nzone z {\nkey {client_ip}\nplan {host} {\nfree unlimited\ndefault free\n}\n}\n}\nrespond ok",
			fixed:  "rate_limit {\nzone z {\nkey {client_ip}\nplan {host} {\nfree 3/1h\ndefault free\n}\n}\n}\nrespond ok",
			advice: "doctor/limit/unlimited", before: admitted,
		},
		"a limit of nothing": {
			site: strings.Replace(good, "3/1h", "0/1h", 1), fixed: good,
			advice: "doctor/limit/closed", before: shares{429: 20},
		},
		"a dry run": {
			site: limited(enforced+"\nenforce 0") + "respond ok", fixed: good,
			advice: "doctor/rollout", before: admitted,
		},
		"an exemption of all": {
			site: limited(enforced+"\nexempt 127.0.0.0/8") + "respond ok", fixed: limited(enforced+"\nexempt 192.0.2.0/24") + "respond ok",
			visits: byClients(25, each(100, "/")),
			advice: "doctor/exempt", before: all(100), after: shares{200: 75, 429: 25},
		},
		"a block of all": {
			site: limited(enforced+"\nblock 127.0.0.0/8") + "respond ok", fixed: limited(enforced+"\nblock 192.0.2.0/24") + "respond ok",
			visits: byClients(25, each(100, "/")),
			advice: "doctor/rejected", before: shares{403: 100}, after: shares{200: 75, 429: 25},
		},
		"one value for all": {
			site: limited("key {header.X-Site}") + "respond ok", then: "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n",
			fixed:  good,
			visits: each(100, "/", "X-Site", "shop", "X-Forwarded-For", "2001:db8:0:{n}::1"),
			advice: "doctor/keys/one", before: shares{200: 3, 429: 97}, after: all(100),
		},
		"a value for each request": {
			site: limited("key {header.X-Session}") + "respond ok", fixed: good, visits: byClients(25, each(100, "/", "X-Session", "{n}")),
			advice: "doctor/keys/new", before: all(100), after: shares{200: 75, 429: 25},
		},
		"a cost that is not where it is looked for": {
			site: charged + answer(`{"tokens": 10}`), fixed: strings.Replace(charged, "usage.total_tokens", "tokens", 1) + answer(`{"tokens": 10}`),
			advice: "costs/unknown", before: admitted,
		},
		"a cost that is no number": {
			site: charged + answer(`{"usage": {"total_tokens": -1, "output": 10}}`), fixed: strings.Replace(charged, "total_tokens", "output", 1) + answer(`{"usage": {"total_tokens": -1, "output": 10}}`),
			advice: "costs/invalid", before: admitted,
		},
		"a cost in another coding": {
			site: charged + "header Content-Encoding br\n" + answer(`{"usage": {"total_tokens": 10}}`), fixed: charged + answer(`{"usage": {"total_tokens": 10}}`),
			advice: "costs/encoded", before: admitted,
		},
		"a cost above the limit": {
			site: limited(enforced+"\ncost 5") + "respond ok", fixed: limited(enforced+"\ncost 1") + "respond ok",
			advice: "load/cost", before: shares{429: 20},
		},
		"a memory that is full": {
			site:   "rate_limit {\nstore memory {\nmax_keys 1024\n}\nzone z {\nrate 2/1h\nkey {client_ip}\n}\n}\nrespond ok",
			fixed:  "rate_limit {\nstore memory {\nmax_keys 10000\n}\nzone z {\nrate 2/1h\nkey {client_ip}\n}\n}\nrespond ok",
			global: proxied, then: proxied,
			visits: slices.Concat(each(1300, "/", "X-Forwarded-For", "2001:db8:0:{n}::1"), each(1300, "/", "X-Forwarded-For", "2001:db8:0:{n}::1")),
			advice: "doctor/max_keys", after: all(2600),
		},
		"a key without braces": {
			site: limited("key client_ip") + "respond ok", fixed: good, visits: byClients(20, each(20, "/")),
			advice: "load/key/constant", before: held, after: admitted,
		},
		"an exemption that clients choose": {
			site: limited(enforced+"\nexempt header X-Monitoring yes") + "respond ok", fixed: limited(enforced+"\nexempt {\nheader X-Monitoring yes\nclient_ip 192.0.2.0/24\n}") + "respond ok",
			visits: each(20, "/", "X-Monitoring", "yes"),
			advice: "load/exempt", before: admitted,
		},
	}
}

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
