package harness

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// fleetSize is how many instances the tests of a package share.
const fleetSize = 3

// shared are the servers that the tests of a package use in turn. The first test that needs one starts it, and [Main]
// ends it.
var shared struct {
	sync.Mutex // held by the test that uses the instances
	caddys     []*Server
	redis      *redistest.Server
	stop       func() error
	prefixes   int
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

// SharedRedis returns a Redis that other tests use too, so it must keep running, and the keys must have a prefix.
func SharedRedis(t *testing.T) *redistest.Server {
	t.Helper()
	if shared.redis == nil {
		redistest.Require(t)
		var err error
		if shared.redis, shared.stop, err = redistest.Run(); err != nil {
			t.Fatal(err)
		}
	}
	return shared.redis
}

// SharedStore is [Redis] with the shared server, or with another address of it, and with a prefix of its own for each
// call.
func SharedStore(t *testing.T, through ...string) string {
	t.Helper()
	address := append(through, SharedRedis(t).Addr())[0]
	shared.prefixes++
	return strings.Replace(Redis(address), "address", fmt.Sprintf("key_prefix test%d\naddress", shared.prefixes), 1)
}

// endShared ends all shared servers.
func endShared() {
	var errs []error
	for _, s := range shared.caddys {
		errs = append(errs, s.Process.Kill(), os.RemoveAll(s.Dir))
	}
	if shared.stop != nil {
		errs = append(errs, shared.stop())
	}
	if err := errors.Join(errs...); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
