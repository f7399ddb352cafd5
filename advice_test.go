//go:build deep

package caddyratelimit_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// advised is a set-up with something wrong, and what follows the advice.
type advised struct {
	global, site string  // of the set-up
	then, fixed  string  // of the one that follows the advice; the global options and the site
	mend         func()  // follows the advice outside of the config, before that
	visits       []visit // nil for 20 to /
	later        []visit // after that, if others follow from the advice
	socket       bool    // the server listens on a Unix socket
	told         string  // who tells first: load, log or doctor; empty if this does not matter
	advice       string  // all that is given, sorted, separated by spaces
	before       shares  // nil if it is only known that fewer are served than after
	after        shares  // nil for 3 of 20
}

// apply runs the set-up, and then the one that follows the advice, with the same requests. What is wrong is
// found, by the advice that is expected, and nothing is found in the end.
func (c *advised) apply(t *testing.T) {
	if c.visits == nil {
		c.visits = each(20, "/")
	}
	if c.after == nil {
		c.after = shares{200: 3, 429: 17}
	}
	run := func(global, site string, visits []visit) (got shares, load, log string) {
		address := caddytest.FreeAddress(t) // a new one, because the server before closes its connections
		if c.socket {
			address = unixSocket + filepath.Join(t.TempDir(), "caddy")
		}
		logs := caddytest.RunConfig(t, address, "{\n"+global+"}\nhttp:// {\n"+site+"\n}\n")
		load = warned(logs.TakeAll())
		return send(t, address, visits), load, warned(logs.TakeAll())
	}
	before, load, log := run(c.global, c.site, c.visits)
	patient.UntilEqual(t, "before", func() string { return strings.Join(blamed(t), " ") }, c.advice)
	told := "doctor"
	if load != "" {
		told = "load"
	} else if log != "" {
		told = "log"
	}
	if c.told != "" && told != c.told {
		t.Errorf("%s tells first, want %s", told, c.told)
	}
	if c.mend != nil {
		c.mend()
	}
	caddytest.RunConfig(t, caddytest.FreeAddress(t), "{\n}\nhttp:// {\nrespond ok\n}\n") // which forgets the counts
	visits := c.visits
	if c.later != nil {
		visits = c.later
	}
	after, load, log := run(c.then, c.fixed, visits)
	patient.UntilEqual(t, "after", func() string { return strings.Join(blamed(t), " ") }, "")
	if c.told != "" && load+log != "" {
		t.Errorf("after: %s%s", load, log)
	}
	if c.before == nil && before[200] >= after[200] || c.before != nil && !maps.Equal(before, c.before) || !maps.Equal(after, c.after) {
		t.Errorf("%v and then %v, want %v and %v", before, after, c.before, c.after)
	}
	t.Logf("%s | %s | %s | %v | %v", c.advice, t.Name(), told, before, after)
}

// zoneAdvice are the set-ups with something wrong in the config.
func zoneAdvice() map[string]advised {
	proxied := "servers {\ntrusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict\n}\n"
	return map[string]advised{
		"a key of the wrong name": {
			site: limited("key {cookie.sid}") + "respond ok", fixed: limited("key {cookie.session}") + "respond ok",
			visits: each(20, "/", "Cookie", "session={n}"),
			advice: "doctor/missing_key/nobody", before: shares{200: 3, 429: 17}, after: shares{200: 20},
		},
		"some clients without a key": {
			site: limited("key {cookie.sid}") + "respond ok", then: proxied,
			fixed:  "rate_limit {\nzone z {\nrate 3/1h\nkey {cookie.sid}\nmissing_key skip\n}\nzone addresses {\nrate 3/1h\nkey {client_ip}\n}\n}\nrespond ok",
			visits: append(each(20, "/", "Cookie", "sid={n}", "X-Forwarded-For", "2001:db8:0:{n}::1"), each(20, "/", "X-Forwarded-For", "2001:db8:1:{n}::1")...),
			advice: "doctor/missing_key", before: shares{200: 23, 429: 17}, after: shares{200: 40},
		},
		"a path that was stripped": {
			site:   "handle_path /api/* {\n" + limited("key {client_ip}\nmatch path /api/*") + "respond ok\n}",
			fixed:  "handle_path /api/* {\n" + limited("key {client_ip}\nmatch path /list") + "respond ok\n}",
			visits: each(20, "/api/list"),
			advice: "doctor/requests", before: shares{200: 20},
		},
		"a handler that answers before": {
			site: "route {\nrespond ok\n" + limited("key {client_ip}") + "}", fixed: "route {\n" + limited("key {client_ip}") + "respond ok\n}",
			advice: "doctor/requests", before: shares{200: 20},
		},
		"a match that fits nothing": {
			site: limited("key {client_ip}\nmatch path /login") + "respond ok", fixed: limited("key {client_ip}\nmatch path /x/login") + "respond ok",
			visits: each(20, "/x/login"),
			advice: "doctor/requests", before: shares{200: 20},
		},
		"a key that a proxy writes": {
			site: limited("key {header.X-Forwarded-For}") + "respond ok", then: proxied, fixed: limited("key {client_ip}") + "respond ok",
			visits: append(each(30, "/", "X-Forwarded-For", "2001:db8:1:{n}::1"), each(20, "/", "X-Forwarded-For", "2001:db8:0:{n}::1, 192.0.2.7")...),
			advice: "load/key/forwarded", before: shares{200: 50}, after: shares{200: 33, 429: 17},
		},
	}
}

// TestAdviceIsGood: what is wrong is found, and the set-up that follows the advice does better with the same
// requests, and nothing is found in it. No advice is left out.
func TestAdviceIsGood(t *testing.T) {
	cases := zoneAdvice()
	maps.Copy(cases, limitAdvice())
	maps.Copy(cases, storeAdvice(t))
	maps.Copy(cases, wrongAdvice(t))
	maps.Copy(cases, proxyAdvice())
	applied := make(map[string]string)
	for by, all := range appliedElsewhere {
		for of := range strings.FieldsSeq(all) {
			applied[of] = by
		}
	}
	for name, c := range cases {
		for of := range strings.FieldsSeq(c.advice) {
			applied[of] = name
		}
		t.Run(name, c.apply)
	}
	for _, a := range advice.All() {
		if applied[a.Name()] == "" {
			t.Errorf("no set-up has the advice %s, so that nobody knows whether it is good", a.Name())
		}
	}
}

// appliedElsewhere are the tests whose set-ups have advice, or why no test can apply it, each with that advice. TestNamesOfTests
// in docs looks for these tests.
var appliedElsewhere = map[string]string{
	"TestReplayAdviceIsGood":                            "replay/suggestion replay/hours replay/trusted_proxies",
	"TestFleetInOneView in integration/cli":             "doctor/agreement doctor/instances/silent",
	"TestInstances in internal/operate/doctor":          "doctor/version doctor/outage",
	"what leaks is seen in logs; see TestGoldenConfigs": "load/key/body",
	"TestRecipesHold, in the recipe of an MCP server":   "load/key/fields",
	"TestGoldenConfigs, and each test of fleets":        "load/store",
	"TestSilentSentinels in integration/faults":         "doctor/silent",
	"make bench-overload-real measures what it brings":  "doctor/upstream/mixed",
	"TestAdaptive in integration":                       "doctor/upstream",
	"TestWhichServer: it needs Sentinels or a Cluster": "doctor/server/cluster doctor/server/single doctor/server/sentinel doctor/server/sentinel/none " +
		"doctor/server/master doctor/server/db doctor/login/sentinel",
	"only Valkey 9.1 has rights to databases":               "doctor/rights/db",
	"TestRedirect: it needs several machines":               "doctor/server/host",
	"TestAddress: only Redis 7.0 names port 0":              "doctor/server/port",
	"a test can give no processors; TestCases":              "doctor/busy",
	"TestChecks: a test cannot hold a breaker open or fail": "doctor/breaker doctor/breaker/failing",
}

// inRedis is a site with a limit in a Redis, by these options of the store.
func inRedis(address, options string) string {
	return "rate_limit {\nstore redis {\naddress " + address + "\n" + options + "\n}\nzone z {\nrate 3/1h\nkey {client_ip}\n}\n}\nrespond ok"
}

// storeAdvice are the set-ups whose store does not do what it should.
func storeAdvice(t *testing.T) map[string]advised {
	start := func(options ...redistest.Option) *redistest.Server {
		return redistest.Start(t, append([]redistest.Option{redistest.WithArgs("--maxmemory", "1gb", "--maxmemory-policy", "noeviction")}, options...)...)
	}
	const patience = "timeout 10s\n"
	admitted, held := shares{200: 20}, shares{200: 3, 429: 17}
	gone, denied := start(), start()
	gone.Kill()
	denied.Kill()
	locked, narrow := start(redistest.WithPassword("right")), start(redistest.WithUser("narrow", "p", "~rl:*", "+@all", "-time", "-info"))
	foreign, silent := start(redistest.WithUser("foreign", "p", "~other:*", "+@all")), start(redistest.WithUser("silent", "p", "~rl:*", "+@all", "-info"))
	replica, unbound, evicting := start(), start(), start()
	if err := replica.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	unbound.Configure("maxmemory", "0")
	evicting.Configure("maxmemory-policy", "allkeys-lru")
	full := start()
	full.Configure("maxmemory", "1")
	fast := start()
	far, slow := faultproxy.Start(t, fast.Addr()), faultproxy.Start(t, fast.Addr())
	far.Delay(300 * time.Millisecond)
	slow.Delay(300 * time.Millisecond)
	otherTime := faultproxy.Start(t, fast.Addr())
	otherTime.Rewrite(func(command string, reply []byte) []byte {
		if command != "time" {
			return reply
		}
		return fmt.Appendf(nil, "*2\r\n$10\r\n%d\r\n$1\r\n0\r\n", time.Now().Add(-time.Hour).Unix())
	})
	crowded := start()
	for _, name := range []string{"other", "third"} { // two other instances, which stay
		crowded.Admin().ZAdd(t.Context(), "rl:instances", redis.Z{Score: 9e14, Member: name})
	}
	acl := func(s *redistest.Server, name, rule string) func() {
		return func() {
			if err := s.Admin().ACLSetUser(t.Context(), name, rule).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return map[string]advised{
		"a Redis that is gone": {
			site: inRedis(gone.Addr(), patience), fixed: inRedis(gone.Addr(), patience), mend: gone.Restart,
			advice: "doctor/answer doctor/on_store_error/allow", before: admitted,
		},
		"a Redis that is gone, and all is denied": {
			site: "rate_limit {\non_store_error deny\n" + inRedis(denied.Addr(), patience)[len("rate_limit {\n"):], fixed: inRedis(denied.Addr(), patience), mend: denied.Restart,
			advice: "doctor/answer doctor/on_store_error", before: shares{503: 20},
		},
		"a password that is wrong": {
			site: inRedis(locked.Addr(), patience+"password wrong"), fixed: inRedis(locked.Addr(), patience+"password right"),
			advice: "doctor/login doctor/on_store_error/allow", before: admitted,
		},
		"a user without a right": {
			site: inRedis(narrow.Addr(), patience+"username narrow\npassword p"), fixed: inRedis(narrow.Addr(), patience+"username narrow\npassword p"),
			mend:   acl(narrow, "narrow", "+@all"),
			advice: "doctor/on_store_error/allow doctor/rights", before: admitted,
		},
		"a user of other keys": {
			site: inRedis(foreign.Addr(), patience+"username foreign\npassword p"), fixed: inRedis(foreign.Addr(), patience+"username foreign\npassword p"),
			mend:   acl(foreign, "foreign", "~rl:*"),
			advice: "doctor/on_store_error/allow doctor/rights/keys", before: admitted,
		},
		"a user who may not ask how Redis is": {
			site: inRedis(silent.Addr(), patience+"username silent\npassword p"), fixed: inRedis(silent.Addr(), patience+"key_prefix rl:2\nusername silent\npassword p"),
			mend:   acl(silent, "silent", "+info"),
			advice: "doctor/memory/info", before: held, after: held, // the limits hold: only doctor sees less
		},
		"a replica": {
			site: inRedis(replica.Addr(), patience), fixed: inRedis(fast.Addr(), patience+"key_prefix replica"),
			advice: "doctor/on_store_error/allow doctor/replica", before: admitted,
		},
		"a Redis without a bound": {
			site: inRedis(unbound.Addr(), patience), fixed: inRedis(unbound.Addr(), patience+"key_prefix bound"), mend: func() { unbound.Configure("maxmemory", "1gb") },
			advice: "doctor/memory/bound", before: held, after: held, // the machine's memory is in danger, not the limits
		},
		"a Redis that removes keys": {
			site: inRedis(evicting.Addr(), patience), fixed: inRedis(evicting.Addr(), patience+"key_prefix kept"), mend: func() { evicting.Configure("maxmemory-policy", "noeviction") },
			advice: "doctor/eviction", before: held, after: held, // until its memory is full: TestEvictionShows in integration/faults
		},
		"a Redis that is full": {
			site: inRedis(full.Addr(), patience), fixed: inRedis(full.Addr(), patience+"key_prefix room"), mend: func() { full.Configure("maxmemory", "1gb") },
			advice: "doctor/memory", before: held, after: held, // each instance counts new keys alone
		},
		"a Redis that is too far": {
			site: inRedis(far.Addr(), "timeout 50ms\nkey_prefix far"), fixed: inRedis(far.Addr(), "timeout 3s\nkey_prefix near"),
			advice: "doctor/on_store_error/allow doctor/round_trip/late", before: admitted,
		},
		"a Redis that is slow": {
			site:  strings.Replace(inRedis(slow.Addr(), "timeout 850ms\nkey_prefix slow"), "3/1h", "40/1h", 1),
			fixed: strings.Replace(inRedis(slow.Addr(), "timeout 850ms\nkey_prefix quick"), "3/1h", "40/1h", 1), mend: func() { slow.Delay(0) },
			advice: "doctor/round_trip doctor/waits", before: shares{200: 20}, after: shares{200: 20}, // which wait less
		},
		"a Redis whose clock is an hour behind": {
			site: inRedis(otherTime.Addr(), patience+"key_prefix behind"), fixed: inRedis(fast.Addr(), patience+"key_prefix right"),
			advice: "doctor/clock", before: held, after: held, // Redis counts by its own clock
		},
		"TLS that is forgotten": func() advised {
			s := start(redistest.WithTLS(false))
			return advised{
				site: inRedis(s.TLSAddr(), patience), fixed: inRedis(s.TLSAddr(), patience+fmt.Sprintf("tls {\nca %s\n}", s.TLS().CA)),
				advice: "doctor/on_store_error/allow doctor/tls", before: admitted,
			}
		}(),
		"instances below the fleet": {
			site:   "rate_limit {\non_store_error local\ninstances 2\n" + inRedis(crowded.Addr(), patience)[len("rate_limit {\n"):],
			fixed:  "rate_limit {\non_store_error local\ninstances 3\n" + inRedis(crowded.Addr(), patience+"key_prefix rl:2")[len("rate_limit {\n"):],
			advice: "doctor/fleet/instances", before: held,
		},
	}
}
