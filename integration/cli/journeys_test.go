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

// TestGoldenJourneys: what an operator types and sees.
func TestGoldenJourneys(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, harness.AnswerAsAsked)
	s := harness.StartCaddy(t, harness.Caddyfile("", "respond ok"))
	t.Run("find out why and repair", func(t *testing.T) { findAndRepair(t, s, b) })
	t.Run("roll a limit out", func(t *testing.T) { rollOut(t, s) })
}

// findAndRepair: a client gets 429, and an operator finds out why and lets it through.
func findAndRepair(t *testing.T, s *harness.Server, b *harness.Backend) {
	j := startJourney(t, s, golden.Open(t, goldenScreens, "find out why and repair"))
	j.writes(harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
		rate_limit {
			zone clients {
				match path /
				key {client_ip}
				events 3
				window 1h
				overrides
			}
			zone search {
				match path /search /find
				key "{client_ip} {path}"
				events 3
				window 1h
				ban 2h after 10 refusals in 10m
			}
			zone streams {
				match path /stream
				key {header.User}
				algorithm concurrency 2
				lease 10m
			}
		}
		reverse_proxy `+b.Address), "zones clients, search and streams")
	j.types(`for i in 1 2 3 4; do curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'; done`)
	j.types("caddy rate-limit zones")
	j.types("caddy rate-limit top --refused")
	j.pastes(j.types("caddy rate-limit get 203.0.113.7"))
	j.types(`curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'`)

	j.types(`for i in 1 2 3 4; do curl http://example.com/search -H 'X-Forwarded-For: 203.0.113.8'; done`)
	j.types("caddy rate-limit get 203.0.113.8")
	j.types("caddy rate-limit get search 203.0.113.8")
	j.pastes(j.types("caddy rate-limit get search 203.0.113.8 /search"))

	j.types("caddy rate-limit ban clients 203.0.113.0/24")
	j.pastes(j.types("caddy rate-limit get clients 203.0.113.77"))
	j.types("caddy rate-limit overrides")
	j.types("caddy rate-limit unban clients 203.0.113.0/24")
	j.types("caddy rate-limit ban clients 203.0.113.9 --for 1h --note 'scrapes prices'")
	j.types(`curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.9'`)
	j.types("caddy rate-limit bans")
	j.types("caddy rate-limit unban clients 203.0.113.9")
	j.types("caddy rate-limit ban search 203.0.113.9 /search")
	j.types("caddy rate-limit set clients 203.0.113.10 500/1h --for 2h")
	j.types("caddy rate-limit overrides")
	j.types("caddy rate-limit set clients 203.0.113.10 --clear")

	client := harness.NewClient(t, "")
	for range 2 {
		go func() { _, _ = harness.Send(client, s.URL("/stream"), "User", "bo", "X-Gate", "streams") }()
	}
	b.AwaitInside(t, 2)
	j.notes("Two streams of bo are running.")
	j.types("curl http://example.com/stream -H 'User: bo'")
	j.types("caddy rate-limit get streams bo")
	b.Open("streams")
	patient.Until(t, "the streams to end", func() bool { inside, _ := b.Now(); return inside == 0 })
	j.ends()
}

// rollOut: a limit is tried out, looked at, enforced for half of the clients, and then for all.
func rollOut(t *testing.T, s *harness.Server) {
	j := startJourney(t, s, golden.Open(t, goldenScreens, "roll a limit out"))
	config := func(option string) string {
		return harness.Caddyfile("servers {\ntrusted_proxies static 127.0.0.0/8\n}", `
			rate_limit {
				zone pages {
					key {client_ip}
					events 4
					window 1h
					`+option+`
				}
			}
			respond ok`)
	}
	const ask = `for i in 1 2 3 4 5 6; do curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'; done`
	j.writes(config("dry_run"), "zone pages { key {client_ip} events 4 window 1h dry_run }")
	j.types(ask)
	j.types("curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.8'")
	j.types("caddy rate-limit zones")
	j.types("caddy rate-limit top --dry-run")
	j.types("caddy rate-limit get 203.0.113.7")
	j.types("caddy rate-limit get pages 203.0.113.7")
	j.writes(config("enforce 50"), "enforce 50")
	j.types(ask)
	j.types(strings.ReplaceAll(ask, "113.7", "113.8"))
	j.types("caddy rate-limit zones")
	j.types("caddy rate-limit top")
	j.types("caddy rate-limit get 203.0.113.7")
	j.writes(config(""), "neither dry_run nor enforce")
	j.types("caddy rate-limit zones")
	j.types("curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'")
	j.pastes(j.types("caddy rate-limit get 203.0.113.7"))
	j.types("curl http://example.com/ -H 'X-Forwarded-For: 203.0.113.7'")
	j.ends()
}

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
