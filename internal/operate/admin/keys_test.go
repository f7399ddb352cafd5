package admin

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestReasonIsTheSame: zones of one store have one reason, whichever connection has failed and whether the breaker is open,
// so commands can say it once.
func TestReasonIsTheSame(t *testing.T) {
	const want = "read tcp 127.0.0.1:6379: i/o timeout"
	for port := 50_001; port < 50_003; port++ {
		failed := &net.OpError{
			Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded,
			Source: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379},
		}
		for _, err := range []error{failed, fmt.Errorf("%w: %w", store.ErrUnavailable, failed)} {
			if got := reason(err); got != want {
				t.Errorf("%v: got %q, want %q", err, got, want)
			}
		}
	}
}
