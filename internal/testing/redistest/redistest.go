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
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

	s := &Server{t: t, dir: ShortDir(t), settings: settled(options)}
	if s.settings.tls && s.settings.certs == (TLSFiles{}) {
		s.settings.certs = Certificate(t)
	}
	s.admin = s.newClient()
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

// ShortDir makes a directory that is removed with the test. A unix socket's path has room for about a hundred bytes, and
// t.TempDir holds the test's name.
func ShortDir(t TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("%v", err)
		}
	})
	if len(dir) > 80 {
		t.Fatalf("%q is too long for unix sockets: set TMPDIR to a shorter directory", dir)
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
	await(s.t, "restarting "+program+": admin client", func(ctx context.Context) error { return s.admin.Ping(ctx).Err() })
}

// await tries until there is no error, and ends the test if that never is.
func await(t TB, what string, try func(context.Context) error) {
	t.Helper()
	if err := childprocess.Poll(patient.Patience, try); err != nil {
		t.Fatalf("%s: %v", what, err)
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
	args, err := s.command()
	if err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	var log strings.Builder // which is complete when the process has ended
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &log, &log
	cmd.WaitDelay = time.Second // for processes that it has forked
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
	err = errors.Join(err, p.Kill())
	text := log.String()
	if strings.Contains(text, "Address already in use") {
		err = fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return fmt.Errorf("starting %s on %s: %w; end of its log:\n%s", program, s.Addr(), err, text[max(0, len(text)-4096):])
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

// The ports lie below those that systems use for outgoing connections (32768 and up on Linux).
// Otherwise such a connection could take the port of a killed server before Restart, or a client
// that dials the port of a dead server could get that very port as its own end and reach itself.
const (
	firstPort = 10000
	busOffset = 10000 // how far the port of the Cluster bus is above a node's port
	portTries = 100

	// lanes is how many test binaries can run at a time that hardly ever choose the same port: each takes the ports of
	// one residue class.
	lanes = 16
)

// ports counts those that were tried, from a number that other test binaries hardly have.
var ports atomic.Int64

func init() { ports.Store(rand.Int64N(busOffset)) }

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on, nor on that of a Cluster bus above it. No other of the
// next hundreds of calls in this test binary returns it; another process may still take it.
func FreePort(t TB) int {
	t.Helper()
	for range portTries {
		port := firstPort + int(ports.Add(1)%(busOffset/lanes))*lanes + os.Getpid()%lanes
		if isFree(port) && isFree(port+busOffset) {
			return port
		}
	}
	t.Fatalf("no free port from %d on in %d tries", firstPort, portTries)
	return 0
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && listener.Close() == nil
}
