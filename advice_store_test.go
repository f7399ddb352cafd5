//go:build deep

package caddyratelimit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

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
