package redistest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// shared is the server of all tests of this binary that call Shared.
var shared struct {
	sync.Mutex
	ends   bool // Main runs, which ends the server
	server *Server
	stop   func()
	tests  int // how many tests have asked for it
}

// Main runs the tests of a package that calls [Shared], and ends their server: a TestMain is
// os.Exit(redistest.Main(m.Run)).
func Main(run func() int) (code int) {
	shared.Lock()
	shared.ends = true
	shared.Unlock()
	code = run()
	shared.Lock()
	defer shared.Unlock()
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// Shared returns the server that all tests of this binary share. It starts with the first of them, and ends with the
// binary. Each call has a [Server.Prefix] of its own, which the keys of the test begin with. The server has a TLS port
// as by WithTLS(true). A test that would disturb others, because it ends or freezes the server, changes its
// configuration, empties it or counts all of its commands, needs a server of its own: see [Start].
func Shared(t TB) *Server {
	t.Helper()
	Require(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.ends {
		t.Fatalf("%s shares a %s, and no TestMain ends that: write os.Exit(redistest.Main(m.Run)) there", t.Name(), program)
	}
	if shared.server == nil {
		shared.server, shared.stop = Run(WithTLS(true))
	}
	shared.tests++
	s := shared.server
	return &Server{
		t: t, settings: s.settings, dir: s.dir, port: s.port, tlsPort: s.tlsPort, admin: s.admin, process: s.process,
		prefix: fmt.Sprint("rl:", shared.tests),
	}
}

// Prefix is what the keys of the test begin with: "rl", and one of its own if the server is shared. The rights of a user
// that docs/redis.md names cover both.
func (s *Server) Prefix() string { return cmp.Or(s.prefix, "rl") }

// own fails the test if other tests use the server too.
func (s *Server) own() {
	s.t.Helper()
	if s.prefix != "" {
		s.t.Fatalf("%s would disturb all that share this %s: start one for it", s.t.Name(), program)
	}
}

// TB is a test, or a program: see [Run].
type TB = testing.TB

// Run starts a redis-server for a program that is not a test. The server runs until stop is
// called. What would end a test panics.
func Run(options ...Option) (server *Server, stop func()) {
	p := new(caller)
	return Start(p, options...), p.stop
}

// caller is the TB of a program that is not a test, as far as this package needs one.
type caller struct {
	testing.TB
	cleanups []func()
}

func (p *caller) Helper()                           {}
func (p *caller) Name() string                      { return "the program" }
func (p *caller) Cleanup(end func())                { p.cleanups = append(p.cleanups, end) }
func (p *caller) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (p *caller) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (p *caller) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (p *caller) Skipf(format string, args ...any)  { p.Fatalf(format, args...) }

// stop does what the end of a test does.
func (p *caller) stop() {
	for _, end := range slices.Backward(p.cleanups) {
		end()
	}
}

// Require skips the test without redis-server, or fails it with REQUIRE_REDIS=1.
func Require(t TB) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	const missing = "SKIPPED %s: no %s on PATH: apt-get install redis-server, or: make redis (then test with -count=1)"
	if os.Getenv("REQUIRE_REDIS") == "1" {
		t.Fatalf(missing+", and REQUIRE_REDIS=1", t.Name(), program)
	}
	t.Skipf(missing, t.Name(), program)
}
