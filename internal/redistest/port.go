package redistest

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports given out lie below those that systems use for outgoing
// connections (32768 and up on Linux). Otherwise one of those could take the
// port of a killed server before Restart, or a client that dials the port of a
// dead server could be given that very port as its own end and reach itself.
const (
	firstPort = 10000
	lastPort  = 32767
	portTries = 100
)

// portsInUse keeps tests of one binary from getting a port that another has
// been given and not yet opened, or has closed for a moment.
var portsInUse = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. No other
// call in this test binary returns it before the test ends; another process
// may still take it.
func FreePort(t testing.TB) int {
	t.Helper()
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if !reserve(port) {
			continue
		}
		listener, err := net.Listen("tcp", localAddr(port))
		if err != nil {
			release(port)
			continue
		}
		t.Cleanup(func() { release(port) })
		if err := listener.Close(); err != nil {
			t.Fatalf("closing port %d: %v", port, err)
		}
		return port
	}
	t.Fatalf("no free port between %d and %d in %d tries", firstPort, lastPort, portTries)
	return 0
}

func reserve(port int) bool {
	portsInUse.Lock()
	defer portsInUse.Unlock()
	if portsInUse.taken[port] {
		return false
	}
	portsInUse.taken[port] = true
	return true
}

func release(port int) {
	portsInUse.Lock()
	defer portsInUse.Unlock()
	delete(portsInUse.taken, port)
}
