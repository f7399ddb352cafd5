//go:build deep

package faults_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

// TestRequiredRedis: a config that requires its Redis does not start without it, and says why; with
// it, it starts.
func TestRequiredRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("right"))
	dir := harness.ShortDir(t)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(strings.Replace(redisSite(redis.Addr(), "timeout 10s\n\t\t\tpassword wrong\n\t\t\trequire"), "bind fd/3", "bind unix/"+dir+"/s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Binary(t), "run", "--config", file, "--adapter", "caddyfile")
	cmd.Dir, cmd.Env = dir, harness.Environment(dir)
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "is required and does not answer") || !strings.Contains(string(output), "WRONGPASS") {
		t.Errorf("%v\n%s", err, output)
	}
	good := strings.Replace(redisSite(redis.Addr(), "timeout 10s\n\t\t\tpassword right\n\t\t\trequire"), "respond ok", "route {\nmetrics /metrics\nrespond ok\n}", 1)
	s := harness.StartCaddy(t, good)
	if a := s.Get(http.DefaultClient, "/"); a.Status != http.StatusOK {
		t.Errorf("status %d", a.Status)
	}
	// A reload without it is refused, and leaves nothing behind.
	refused := strings.NewReplacer("password right", "password wrong", "zone open", "zone fresh", "events 100", "events 99").Replace(good)
	if err := s.Load(refused); err == nil || !strings.Contains(err.Error(), "is required and does not answer") {
		t.Errorf("a reload: %v", err)
	}
	metrics := s.Get(http.DefaultClient, "/metrics").Body
	zones, err := s.Admin("GET", "/rate_limit/zones", "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{metrics, zones} {
		if strings.Contains(shown, `"fresh"`) || strings.Contains(shown, `"99"`) || !strings.Contains(shown, `"open"`) {
			t.Errorf("after a reload that was refused:\n%s", shown)
		}
	}
}

// TestMissingTLSShows: errors that only say that the connection has ended name the likely reason.
func TestMissingTLSShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithTLS(false))
	harness.StartCaddy(t, redisSite(redis.TLSAddr(), "")).AwaitLog("the rate limit store does not answer", "if it expects TLS, add tls")
	harness.StartCaddy(t, redisSite(redis.Addr(), "tls")).AwaitLog("the rate limit store does not answer", "is this a port for TLS? if not, leave tls out")
}
