package redistest

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

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
