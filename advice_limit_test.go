//go:build deep

package caddyratelimit_test

import (
	"slices"
	"strings"
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
