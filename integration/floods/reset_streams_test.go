//go:build deep

package floods_test

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// TestResetStreams: a client resets its streams of HTTP/2 as soon as it has opened them. All slots that its requests had come back,
// and no more requests reach the upstream than a window allows.
func TestResetStreams(t *testing.T) {
	patient.BesideOthers(t)
	const atOnce, slots, window = 100, 5, 50
	harness.EachStore(t, func(t *testing.T, store string) {
		var came atomic.Int64
		b := harness.StartBackend(t, func(_ *harness.Backend, _ http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/window":
				came.Add(1)
			case r.Header.Get("X-Key") == "leaves":
				<-r.Context().Done()
			}
		})
		site := harness.Limited("slots", "algorithm concurrency 5", store, "reverse_proxy {$UPSTREAM}") +
			harness.Limited("window", "algorithm fixed_window\nrate 50/1000h", store, "reverse_proxy {$UPSTREAM}")
		s := harness.StartCaddy(t, harness.Caddyfile("servers {\nprotocols h1 h2c\n}", site), b.Variable())
		for _, path := range []string{"/slots", "/window"} {
			for range 99 { // connections
				resetStreams(t, s, path, atOnce)
			}
		}
		s.AwaitLeft("slots", slots)
		if left := s.Left("window"); came.Load() > window || left != 0 {
			t.Errorf("%d requests reached the upstream, and %d are left of %d", came.Load(), left, window)
		}
	})
}

// resetStreams opens streams on a connection of its own, resets each at once, and waits until the server has seen that.
func resetStreams(t *testing.T, s *harness.Server, path string, n int) {
	t.Helper()
	l, err := newWire2(net.Dial("tcp", s.Address))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := l.(*wire2)
	first := w.stream
	for range n {
		if err := w.begin(path, "leaves"); err != nil {
			t.Fatal(err)
		}
	}
	for id := first; id < w.stream; id += 2 {
		if err := w.frames.WriteRSTStream(id, http2.ErrCodeCancel); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.frames.WritePing(false, [8]byte{}); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := w.frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			return
		}
	}
}
