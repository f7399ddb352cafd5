package cli

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hangingUp is a listener that closes the first connections that it accepts.
type hangingUp struct {
	net.Listener
	left atomic.Int64
}

func (l *hangingUp) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.left.Add(-1) < 0 {
			return conn, err
		}
		_ = conn.Close()
	}
}

// TestQuestionsAreAskedAgain: a question whose connection breaks off is asked twice more, because a reload replaces
// the admin endpoint. A change is not made again, because it may have been made.
func TestQuestionsAreAskedAgain(t *testing.T) {
	for _, c := range []struct {
		method  string
		breaks  int64
		answers bool
	}{
		{http.MethodGet, 0, true},
		{http.MethodGet, maxRepeats, true},
		{http.MethodGet, maxRepeats + 1, false},
		{http.MethodPut, 0, true},
		{http.MethodPut, 1, false},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		breaking := &hangingUp{Listener: listener}
		breaking.left.Store(c.breaks)
		server := &http.Server{ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(breaking) }()
		t.Cleanup(func() { _ = server.Close() })

		e := &instance{address: listener.Addr().String()}
		_, err = e.call(c.method, "zones", nil, nil)
		what := fmt.Sprintf("%s after %d broken connections", c.method, c.breaks)
		if c.answers != strings.HasPrefix(fmt.Sprint(err), "the Caddy at ") { // it has no such path
			t.Errorf("%s: %v", what, err)
		}
		if !c.answers && !strings.Contains(err.Error(), "is Caddy running") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
