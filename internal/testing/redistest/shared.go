package redistest

import (
	"cmp"
	"fmt"
	"os"
	"sync"
)

// shared is the server of all tests of this binary that call Shared.
var shared struct {
	sync.Mutex
	ends   bool // Main runs, which ends the server
	server *Server
	stop   func() error
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
		if err := shared.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "ending the shared %s: %v\n", program, err)
			code = max(code, 1)
		}
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
		var err error
		if shared.server, shared.stop, err = Run(WithTLS(true)); err != nil {
			t.Fatal(err)
		}
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
