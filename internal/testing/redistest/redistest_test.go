//go:build deep

package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// client returns a client like that of a store: no retries, and deadlines are obeyed.
func client(t *testing.T, options redis.Options) *redis.Client {
	t.Helper()
	options.MaxRetries = -1
	options.DialerRetries = 1
	options.ContextTimeoutEnabled = true
	c := redis.NewClient(&options)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

func mustPing(t *testing.T, c *redis.Client) {
	t.Helper()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("ping %s: %v", c.Options().Addr, err)
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Fatalf("got error %v, want one with %q", err, part)
	}
}

func wantRefused(t *testing.T, network, addr string) {
	t.Helper()
	conn, err := net.Dial(network, addr)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dial %s: got error %v, want connection refused", addr, err)
	}
}

func TestStopsWithTheTest(t *testing.T) {
	t.Parallel()
	Require(t)
	tests := map[string]func(*Server){
		"running": func(*Server) {},
		"frozen":  (*Server).Freeze,
		"killed":  (*Server).Kill,
		"killed while frozen": func(s *Server) {
			s.Freeze()
			s.Kill()
		},
		"shut down": func(s *Server) { s.Admin().Shutdown(t.Context()) },
	}
	for name, leave := range tests {
		t.Run(name, func(t *testing.T) {
			var s *Server
			t.Run("inner", func(t *testing.T) {
				s = Start(t)
				leave(s)
			})
			wantRefused(t, "tcp", s.Addr())
			if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("directory %s is still there: %v", s.dir, err)
			}
		})
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := Start(t)
	ctx := t.Context()
	c := client(t, redis.Options{Addr: s.Addr()})
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr, pid := s.Addr(), s.Pid()

	s.Kill()
	wantRefused(t, "tcp", s.Addr())
	wantRefused(t, "unix", s.Socket())
	s.Kill() // a second call does nothing
	s.Thaw()
	// Enough refusals for go-redis to stop dialing for a while.
	for range 3 * s.Admin().Options().PoolSize {
		if err := s.Admin().Ping(ctx).Err(); err == nil {
			t.Fatal("a killed server answered")
		}
	}

	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("got %s with pid %d, want %s with another pid than %d", s.Addr(), s.Pid(), addr, pid)
	}
	mustPing(t, s.Admin())
	mustPing(t, client(t, redis.Options{Addr: s.Addr()}))
	if n := s.Admin().DBSize(ctx).Val(); n != 0 {
		t.Errorf("got %d keys after a restart, want none", n)
	}
}

func TestFreezeAndThaw(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := client(t, redis.Options{Addr: s.Addr()})
	mustPing(t, c)

	s.Freeze()
	for name, c := range map[string]*redis.Client{
		"open connection": c,
		"new connection":  client(t, redis.Options{Addr: s.Addr()}),
		"admin":           s.Admin(),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := c.Ping(ctx).Err()
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: got error %v, want deadline exceeded", name, err)
		}
	}

	s.Thaw()
	s.Thaw() // a second call does nothing
	mustPing(t, c)
	mustPing(t, s.Admin())
}
