package integration_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// redisSite is a site with two zones in Redis, with more options of the store.
func redisSite(address, options string) string {
	return caddyfile("", `rate_limit {
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

// awaitLog waits until Caddy's log has a line with all of some texts.
func (s *server) awaitLog(texts ...string) {
	s.t.Helper()
	patient.Until(s.t, "a line of the log with "+strings.Join(texts, ", "), func() bool {
		for line := range bytes.Lines(s.log()) {
			has := true
			for _, text := range texts {
				has = has && bytes.Contains(line, []byte(text))
			}
			if has {
				return true
			}
		}
		return false
	})
}

// TestWrongPasswordShows: without any request, the log says that Redis does not answer and what
// that means, and then that it does.
func TestWrongPasswordShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("right"))
	s := startCaddy(t, redisSite(redis.Addr(), "password wrong"))
	s.awaitLog(`"level":"error"`, "the rate limit store does not answer", "WRONGPASS")
	s.awaitLog(`"level":"warn"`, "until the rate limit store answers", "do not limit anything (on_store_error allow): open", "refuse all requests (on_store_error deny): closed")
	redis.Configure("requirepass", "wrong")
	s.awaitLog(`"level":"info"`, `"msg":"the rate limit store answers"`, `"version":"`, `"round_trip":`, `"instances":`)
	if n := bytes.Count(s.log(), []byte("until the rate limit store answers")); n != 1 {
		t.Errorf("%d lines about the consequence, want 1", n)
	}
}

// TestEvictionShows: a Redis that removes keys lets refused clients through again.
func TestEvictionShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithArgs("--maxmemory-policy", "allkeys-lru"))
	s := startCaddy(t, redisSite(redis.Addr(), ""))
	s.awaitLog(`"level":"warn"`, "set maxmemory-policy noeviction", `"maxmemory_policy":"allkeys-lru"`)
}

// TestRequiredRedis: a config that requires its Redis does not start without it, and says why; with
// it, it starts.
func TestRequiredRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithPassword("right"))
	dir := shortDir(t)
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, []byte(strings.Replace(redisSite(redis.Addr(), "password wrong\n\t\t\trequire"), "bind fd/3", "bind unix/"+dir+"/s", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "run", "--config", file, "--adapter", "caddyfile")
	cmd.Dir, cmd.Env = dir, environment(dir)
	output, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "is required and does not answer") || !strings.Contains(string(output), "WRONGPASS") {
		t.Errorf("%v\n%s", err, output)
	}
	s := startCaddy(t, redisSite(redis.Addr(), "password right\n\t\t\trequire"))
	if a := s.get(http.DefaultClient, "/"); a.status != http.StatusOK {
		t.Errorf("status %d", a.status)
	}
}

// TestMissingTLSShows: errors that only say that the connection has ended name the likely reason.
func TestMissingTLSShows(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithTLS(false))
	startCaddy(t, redisSite(redis.TLSAddr(), "")).awaitLog("the rate limit store does not answer", "does it expect TLS? then add tls")
	startCaddy(t, redisSite(redis.Addr(), "tls")).awaitLog("the rate limit store does not answer", "is this a port for TLS? else leave tls out")
}
