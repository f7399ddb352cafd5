package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"sync"
)

// The ports lie below those that systems use for outgoing connections (32768 and up on Linux).
// Otherwise such a connection could take the port of a killed server before Restart, or a client
// that dials the port of a dead server could get that very port as its own end and reach itself.
const (
	firstPort = 10000
	lastPort  = 32767
	portTries = 100
)

// portsInUse keeps tests of one binary from getting a port that another test has been given and
// has not opened yet, or has closed for a moment.
var portsInUse = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// busOffset is how far the port of the Cluster bus is above a node's port.
const busOffset = 10000

// lanes is how many test binaries can run at a time that hardly ever choose the same port: each takes the ports of one
// residue class. It divides busOffset, so that the port of the bus is in the same lane.
const lanes = 16

// FreePort returns a TCP port of 127.0.0.1 that nothing listens on. No other
// call in this test binary returns it before the test ends; another process may still take it.
func FreePort(t TB) int {
	t.Helper()
	return freePort(t, lastPort, 0)
}

// freePortAndBus is FreePort with the port of the Cluster bus free as well.
func freePortAndBus(t TB) int {
	t.Helper()
	return freePort(t, lastPort-busOffset, 0, busOffset)
}

// freePort returns a port from which the ports at all offsets are free.
func freePort(t TB, last int, offsets ...int) int {
	t.Helper()
	for range portTries {
		port := firstPort + rand.IntN((last-firstPort+1)/lanes)*lanes + os.Getpid()%lanes
		got := 0
		for got < len(offsets) && take(port+offsets[got]) {
			got++
		}
		release := func() {
			for _, offset := range offsets[:got] {
				release(port + offset)
			}
		}
		if got == len(offsets) {
			t.Cleanup(release)
			return port
		}
		release()
	}
	t.Fatalf("no free port between %d and %d in %d tries", firstPort, last, portTries)
	return 0
}

// take reserves a port if nothing listens on it.
func take(port int) bool {
	if !reserve(port) {
		return false
	}
	listener, err := net.Listen("tcp", localAddr(port))
	if err != nil {
		release(port)
		return false
	}
	return listener.Close() == nil
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
