//go:build deep

package faults_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// redisSite is a site with two zones in Redis, with more options of the store.
func redisSite(address, options string) string {
	return harness.Caddyfile("", `rate_limit {
		store redis {
			address `+address+`
			`+options+`
		}
		zone open {
			events 100
			window 1m
		}
		zone closed {
			events 100
			window 1m
			on_store_error deny
		}
	}
	respond ok`)
}

// TestWrongPasswordShows: without any request, the log says that Redis does not answer and what
// that means, and then that it does.
func TestWrongPasswordShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("right"))
	s := harness.StartCaddy(t, redisSite(redis.Addr(), "password wrong"))
	s.AwaitLog(`"level":"error"`, "the rate limit store does not answer", "WRONGPASS")
	s.AwaitLog(`"level":"warn"`, "until the rate limit store answers", "do not limit anything (on_store_error allow): open", "refuse all requests (on_store_error deny): closed")
	if screen, _ := s.RateLimit("stores"); !strings.Contains(screen, "  no       failing  ") || !strings.Contains(screen, ": WRONGPASS") {
		t.Errorf("the stores do not say what is wrong:\n%s", screen)
	}
	redis.Configure("requirepass", "wrong")
	s.AwaitLog(`"level":"info"`, `"msg":"the rate limit store answers"`, `"version":"`, `"round_trip":`, `"instances":`)
	if n := bytes.Count(s.Log(), []byte("until the rate limit store answers")); n != 1 {
		t.Errorf("%d lines about the consequence, want 1", n)
	}
}

// TestLostStoreShows: when Redis goes away in operation, the log says what that means for which zones.
func TestLostStoreShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := harness.StartCaddy(t, redisSite(redis.Addr(), ""))
	s.AwaitLog(`"level":"info"`, `"msg":"the rate limit store answers"`)
	redis.Kill()
	s.Get(harness.NewClient(t, ""), "/")
	s.AwaitLog(`"level":"error"`, "the rate limit store does not answer")
	s.AwaitLog(`"level":"warn"`, "until the rate limit store answers", "refuse all requests (on_store_error deny): closed")
}

// TestEvictionShows: a Redis that removes keys lets refused clients through again.
func TestEvictionShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "allkeys-lru"))
	s := harness.StartCaddy(t, redisSite(redis.Addr(), ""))
	s.AwaitLog(`"level":"warn"`, "set maxmemory-policy noeviction", `"maxmemory_policy":"allkeys-lru"`)
}

// TestMissingTLSShows: errors that only say that the connection has ended name the likely reason.
func TestMissingTLSShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithTLS(false))
	harness.StartCaddy(t, redisSite(redis.TLSAddr(), "")).AwaitLog("the rate limit store does not answer", "if it expects TLS, add tls")
	harness.StartCaddy(t, redisSite(redis.Addr(), "tls")).AwaitLog("the rate limit store does not answer", "is this a port for TLS? if not, leave tls out")
}
