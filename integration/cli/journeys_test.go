//go:build deep

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/golden"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestGoldenJourneyOfFleet: two instances share a Redis with TLS and an ACL user.
func TestGoldenJourneyOfFleet(t *testing.T) {
	t.Parallel()
	want := golden.Open(t, goldenScreens, "a fleet on one Redis") // first, because there may be no Redis
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := regexp.MustCompile(`user limiter on >password (.*)`).FindStringSubmatch(string(page))
	if rules == nil {
		t.Fatal("no user in docs/redis.md")
	}
	redisServer := redistest.Start(t, redistest.WithTLS(false), redistest.WithUser("limiter", "right", strings.Fields(rules[1])...))
	password := filepath.Join(harness.ShortDir(t), "password")
	if err := os.WriteFile(password, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				key {client_ip}
				events 10
				window 1h
				on_store_error local
			}
			instances 2
			store redis {
				address `+redisServer.TLSAddr()+`
				username limiter
				password {file.`+password+`}
				timeout 2s
				tls {
					ca `+redisServer.TLS().CA+`
				}
			}
		}
		respond ok`)
	s, other := harness.StartCaddy(t, config), harness.StartCaddy(t, config)
	j := startJourney(t, s, want)
	for name, target := range map[string]string{"a": filepath.Join(s.Dir, "admin"), "b": filepath.Join(other.Dir, "admin"), "password": password} {
		if err := os.Symlink(target, filepath.Join(s.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	j.env = append(j.env, "B="+other.Address)
	answers := func(want bool) {
		t.Helper()
		patient.Until(t, "both instances to see Redis", func() bool {
			for _, caddy := range []*harness.Server{s, other} {
				var stores []struct {
					Answers bool
					Breaker string
				}
				if caddy.Ask("/rate_limit/stores", &stores); stores[0].Answers != want || want && stores[0].Breaker != "closed" {
					return false
				}
			}
			return true
		})
	}

	const both = " --address unix/a,unix/b"
	s.AwaitLog("the rate limit store does not answer", "WRONGPASS")
	j.notes("The password of the config is wrong. Caddy is started.")
	j.types("grep -o '\"msg\":\"the rate limit store does not answer.*' log | head -n 1")
	j.types("COLUMNS=200 caddy rate-limit stores --check" + both)
	j.types("printf right > password")
	j.types("caddy reload --force")
	startJourney(t, other, golden.Case{}).types("caddy reload --force")
	answers(true)
	j.types("COLUMNS=200 caddy rate-limit stores" + both)
	j.types(`for i in 1 2 3 4 5 6; do curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'; done`)
	j.types(`for i in 1 2 3 4 5 6; do SITE=$B curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'; done`)
	j.types("caddy rate-limit zones" + both)
	j.types("caddy rate-limit top --refused" + both)
	j.types("caddy rate-limit get 203.0.113.7" + both)

	redisServer.Kill()
	answers(false)
	j.notes("Redis is killed.")
	j.types("caddy rate-limit get 203.0.113.7 --address unix/a") // the errors of two instances can differ
	j.types(`for i in 1 2 3 4 5 6; do curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.8'; done`)
	j.types("caddy rate-limit zones" + both)
	redisServer.Restart()
	answers(true)
	j.notes("Redis is started again.")
	j.types("COLUMNS=200 caddy rate-limit stores --check" + both)
	j.types("curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.8'")
	j.types("caddy rate-limit get clients 203.0.113.8" + both)
	j.ends()
}
