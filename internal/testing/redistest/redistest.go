// Package redistest gives tests real redis-server processes: one ([Start]), a master
// under Sentinels ([StartSentinel]), or a Cluster ([StartCluster]).
//
// Such a server belongs to one test: it has its own ports, its own unix socket
// and an empty memory, it persists nothing, and it stops with the test. Tests
// may run in parallel, and several test binaries at once. Most tests need less:
// the server of their binary ([Shared]), with a key prefix of their own.
//
// Without redis-server on PATH the tests that call [Start] are skipped, unless
// REQUIRE_REDIS=1 turns the skip into a failure.
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/childprocess"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

const (
	program      = "redis-server"
	startTimeout = patient.Patience
	startTries   = 3
)

// errPortTaken says that another process has the port, so another port may do.
var errPortTaken = errors.New("port taken")

// Server is a running redis-server. Its methods may be called from any
// goroutine while the test runs, except Restart, which may end the test and so
// belongs to the goroutine that runs it.
type Server struct {
	t        TB
	settings settings
	dir      string // short, because the path of a unix socket is limited
	port     int
	tlsPort  int // 0 without WithTLS
	admin    *redis.Client
	prefix   string // of the keys of a test that shares the server

	mu      sync.Mutex
	process *childprocess.Process // the one started last; it may have ended
}

// Start starts a redis-server for the test, and stops it when the test ends. It returns once the
// server answers PING. If the server does not, the test ends with the server's log.
func Start(t TB, options ...Option) *Server {
	t.Helper()
	Require(t)

	s := newServer(t, options...)
	t.Cleanup(s.stop)
	for try := 1; ; try++ {
		if s.port = FreePort(t); s.settings.tls {
			s.tlsPort = FreePort(t)
		}
		err := s.launch()
		if err == nil {
			return s
		}
		if try == startTries || !errors.Is(err, errPortTaken) {
			t.Fatal(err)
		}
	}
}

// newServer prepares everything except the ports and the process.
func newServer(t TB, options ...Option) *Server {
	t.Helper()
	s := &Server{t: t, dir: shortDir(t)}
	for _, option := range options {
		option(&s.settings)
	}
	if s.settings.tls && s.settings.certs == (TLSFiles{}) {
		s.settings.certs = makeCerts(t)
	}
	s.admin = s.newClient()
	return s
}

func (s *Server) newClient() *redis.Client {
	return redis.NewClient(&redis.Options{
		Network:               "unix",
		Addr:                  s.Socket(),
		Password:              s.settings.password,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		// Tests count commands and errors, so this client should cause as few as possible.
		DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
}

// shortDir makes the server's directory. t.TempDir holds the test's name, and
// a unix socket's path has room for about a hundred bytes.
func shortDir(t TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl")
	if err != nil {
		t.Fatalf("making the directory of a %s: %v", program, err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing the directory of a %s: %v", program, err)
		}
	})
	if path := filepath.Join(dir, "s"); len(path) >= 100 {
		t.Fatalf("the unix socket's path must stay under 100 bytes, got %q: set TMPDIR to a shorter directory", path)
	}
	return dir
}

// host is the address that the server listens on.
func (s *Server) host() string { return cmp.Or(s.settings.host, "127.0.0.1") }

// Addr returns the address of the plain TCP port, "127.0.0.1:port". It is open
// with WithTLS too.
func (s *Server) Addr() string { return net.JoinHostPort(s.host(), strconv.Itoa(s.port)) }

// TLSAddr returns the address of the TLS port, or "" without WithTLS.
func (s *Server) TLSAddr() string {
	if s.tlsPort == 0 {
		return ""
	}
	return net.JoinHostPort(s.host(), strconv.Itoa(s.tlsPort))
}

// TLS returns what a client needs for the TLS port; it is zero without WithTLS.
func (s *Server) TLS() TLSFiles { return s.settings.certs }

// Socket returns the path of the unix socket, which is always open.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// Admin returns a client of the default user, for looking inside. It uses the unix socket, never
// retries, obeys the deadline of its context, survives Restart, and is closed with the test. It
// connects on first use.
func (s *Server) Admin() *redis.Client { return s.admin }

// Slots returns how many slots of a key are held. The last one that is given back stays for a moment, as one that has ended.
func (s *Server) Slots(key string) int64 {
	s.t.Helper()
	n, err := s.admin.ZCount(context.Background(), key, "1", "+inf").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Configure changes an option of the running server.
func (s *Server) Configure(option, value string) {
	s.t.Helper()
	s.own()
	if err := s.admin.ConfigSet(context.Background(), option, value).Err(); err != nil {
		s.t.Errorf("setting %s of a %s to %q: %v", option, program, value, err)
	}
}

// Pid returns the process id of the server started last, which Kill may have
// ended since.
func (s *Server) Pid() int { return s.current().PID() }

// Kill ends the server with SIGKILL and waits until it is gone: from then on
// its ports refuse connections. It does nothing to a server that has ended.
func (s *Server) Kill() {
	s.t.Helper()
	s.own()
	if err := s.current().Kill(); err != nil {
		s.t.Errorf("killing %s: %v", program, err)
	}
}

// Freeze stops the server with SIGSTOP and waits until it stands still. Its
// ports still accept connections, because the kernel does, but nothing answers
// until Thaw.
func (s *Server) Freeze() {
	s.t.Helper()
	s.own()
	if err := s.current().Freeze(startTimeout); err != nil {
		s.t.Errorf("freezing %s: %v", program, err)
	}
}

// Thaw lets a frozen server go on with SIGCONT. It does nothing to a server
// that runs or has ended.
func (s *Server) Thaw() {
	s.t.Helper()
	if err := s.current().Thaw(); err != nil {
		s.t.Errorf("thawing %s: %v", program, err)
	}
}

// Restart replaces the server, whether it runs, is frozen or was killed, by a
// new process with the same ports, the same options and an empty memory, and
// waits until that answers PING.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatal(err)
	}
	// The admin client may have seen enough refusals to stop dialing for a
	// while. It must be usable when Restart returns.
	err := childprocess.Poll(startTimeout, func(ctx context.Context) error { return s.admin.Ping(ctx).Err() })
	if err != nil {
		s.t.Fatalf("restarting %s: admin client: %v", program, err)
	}
}

func (s *Server) current() *childprocess.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// launch starts the process and waits for its PONG. When it fails, no process
// is left, and the error holds the end of the log.
func (s *Server) launch() error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	// Redis logs to its standard output. Errors from before it knows where to log
	// go there, too.
	logfile := filepath.Join(s.dir, "log")
	output, err := os.OpenFile(logfile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	defer output.Close()
	info, err := output.Stat()
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}

	args, err := s.command()
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = output, output
	p, err := childprocess.Start(cmd)
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()

	err = s.awaitPong(p)
	if err == nil {
		return nil
	}
	if killErr := p.Kill(); killErr != nil {
		err = errors.Join(err, killErr)
	}
	text := readFrom(logfile, info.Size())
	if bytes.Contains(text, []byte("Address already in use")) {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return fmt.Errorf("starting %s on %s: %w; end of its log:\n%s", program, s.Addr(), err, tail(text))
}

// awaitPong asks on the unix socket. No other server can answer there, as one could on a port
// that was lost to it, and Redis opens that socket after its ports. A client that has seen a few refusals stops dialing for a
// while, so each question has its own.
func (s *Server) awaitPong(p *childprocess.Process) error {
	return p.Await(startTimeout, func(ctx context.Context) error {
		client := s.newClient()
		defer client.Close()
		return client.Ping(ctx).Err()
	})
}

// stop ends the server with the test. It thaws the server first, so that a frozen one closes its
// connections like any other.
func (s *Server) stop() {
	if err := s.admin.Close(); err != nil {
		s.t.Errorf("closing the admin client: %v", err)
	}
	if s.current() == nil {
		return // never started
	}
	s.Thaw()
	s.Kill()
}

// readFrom returns what this start has written. The log outlives a Restart.
func readFrom(path string, offset int64) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	return text[min(offset, int64(len(text))):]
}

func tail(text []byte) []byte {
	const most = 4096
	return text[max(0, len(text)-most):]
}
