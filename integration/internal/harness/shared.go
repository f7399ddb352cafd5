package harness

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// fleetSize is how many instances the tests of a package share.
const fleetSize = 3

// shared are the servers that the tests of a package use in turn. The first test that needs one starts it, and [Main]
// ends it.
var shared struct {
	sync.Mutex // held by the test that uses the instances
	caddys     []*Server
}

// One returns a Caddy with a config, which other tests use before and after. Its site is one of [Caddyfile]. In the
// config, {$NAME} is replaced if there is a variable "NAME=value". A test may call One or [Three] once, and may not run
// in parallel. When the test ends, no config is loaded, so that memory and the connections to Redis are free.
func One(t *testing.T, config string, variables ...string) *Server {
	t.Helper()
	return share(t, 1, config, variables)[0]
}

// Three is [One] for a fleet of three instances with the same config.
func Three(t *testing.T, config string, variables ...string) []*Server {
	t.Helper()
	return share(t, fleetSize, config, variables)
}

func share(t *testing.T, n int, config string, variables []string) (servers []*Server) {
	t.Helper()
	if !shared.TryLock() {
		t.Fatal("a test has the shared instances: call One or Three once, and without t.Parallel")
	}
	t.Cleanup(shared.Unlock)
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		config = strings.ReplaceAll(config, "{$"+name+"}", value)
	}
	for len(shared.caddys) < n {
		shared.caddys = append(shared.caddys, startShared(t))
	}
	for _, s := range shared.caddys[:n] {
		s := &Server{T: t, Dir: s.Dir, Address: s.Address, Process: s.Process}
		if info, err := os.Stat(s.logFile()); err == nil {
			s.logged = info.Size()
		}
		t.Cleanup(func() {
			if err := s.Load(nothing); err != nil {
				t.Error(err)
			}
			s.checkLog()
		})
		s.MustLoad(config)
		servers = append(servers, s)
	}
	return servers
}

// nothing is the config between two tests.
var nothing = Caddyfile("", "respond none")

func startShared(t *testing.T) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "rlc")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{T: t, Dir: dir}
	s.launch(Binary(t), 1, nothing)
	s.awaitConfig()
	return s
}

// SharedStore is [Redis] with the server of [redistest.Shared], or with another address of it, and with a prefix of its own
// for each call.
func SharedStore(t *testing.T, through ...string) string {
	t.Helper()
	server := redistest.Shared(t)
	address := append(through, server.Addr())[0]
	return strings.Replace(Redis(address), "address", "key_prefix "+server.Prefix()+"\naddress", 1)
}

// endShared ends the shared instances.
func endShared() {
	var errs []error
	for _, s := range shared.caddys {
		errs = append(errs, s.Process.Kill(), os.RemoveAll(s.Dir))
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// Memory and Redis are lines of a Caddyfile. Tests that count exactly give Redis more time than
// users do, and answer 503 without it: on a busy machine, a request that was let through because
// Redis was late would look like a limit that is exceeded.
const Memory = "store memory\n"

// Redis names the store at an address, see [Memory].
func Redis(address string) string {
	return "store redis {\naddress " + address + "\ntimeout 10s\n}\non_store_error deny\n"
}

// Timeout is how long decisions may take in tests where Redis goes away and comes back: as long
// as users have it on an idle machine, and longer on a busy one, where a healthy Redis may be
// late.
func Timeout() string { return "timeout " + DecisionTime().String() }

// DecisionTime is what [Timeout] gives decisions.
func DecisionTime() time.Duration {
	if patient.Idle() {
		return 50 * time.Millisecond
	}
	return time.Second
}

// EachStore runs a test with each store. The Redis is the test's own.
func EachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, Memory)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, Redis(redistest.Start(t).Addr()))
	})
}

// Limited is a route of a Caddyfile: requests to the zone's path meet the zone.
func Limited(zone, options, store, then string) string {
	return "handle /" + zone + " {\nrate_limit {\nzone " + zone + " {\n" + options + "\n}\n" + store + "}\n" + then + "\n}\n"
}

// Left asks how much is left of a zone that counts all requests together.
func (s *Server) Left(zone string) int64 {
	s.T.Helper()
	k := s.Spent(zone, "")
	return k.Quota - k.Used
}

// AwaitLeft waits until that much of a zone is left.
func (s *Server) AwaitLeft(zone string, want int64) {
	s.T.Helper()
	patient.UntilEqual(s.T, "what is left of zone "+zone, func() int64 { return s.Left(zone) }, want)
}

// Waiting returns how many requests this module makes wait, according to Caddy's goroutines.
func (s *Server) Waiting() int {
	s.T.Helper()
	stacks, err := s.Stacks()
	if err != nil {
		s.T.Fatal(err)
	}
	return strings.Count(stacks, "limiter.(*retryWait).sleep(")
}

// AwaitWaiting waits until so many requests wait.
func (s *Server) AwaitWaiting(want int) {
	s.T.Helper()
	patient.Until(s.T, "requests to wait, or to leave", func() bool { return s.Waiting() == want })
}
