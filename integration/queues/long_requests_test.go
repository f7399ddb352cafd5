package queues_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// slotZones is a route where a request holds two slots: one whose lease is so short that the slot
// is lost unless it is renewed, and one whose lease is so long that the slot comes back only if
// it is given back.
func slotZones(events, store string) string {
	return harness.Limited("renewed", "algorithm concurrency\nevents "+events+"\nlease 6s", store, "respond ok") +
		harness.Limited("returned", "algorithm concurrency\nevents "+events+"\nlease 1h", store, "respond ok") +
		`handle /both {
			rate_limit {
				zone renewed {
					algorithm concurrency
					events ` + events + `
					lease 6s
				}
				zone returned {
					algorithm concurrency
					events ` + events + `
					lease 1h
				}
				` + store + `
			}
			reverse_proxy {$UPSTREAM}
		}
		`
}

// longer is more than three of the shorter leases. They are long enough for a busy machine to
// renew them in time.
const longer = 18500 * time.Millisecond

// stayTaken checks that both slots stay taken for longer than any lease that is not renewed.
func stayTaken(t *testing.T, client *http.Client, left int64, servers ...*harness.Server) {
	t.Helper()
	const steps = 60
	ticker := time.NewTicker(longer / steps)
	defer ticker.Stop()
	for n := range steps {
		for _, s := range servers {
			renewed, returned := s.Left(client, "renewed"), s.Left(client, "returned")
			if renewed != left || returned != left {
				t.Errorf("after %v: %d and %d left, want %d", longer*time.Duration(n)/steps, renewed, returned, left)
				return
			}
		}
		<-ticker.C
	}
}

// streaming sends an event now and then until the client leaves, or switches to a protocol that
// sends back each line.
func streaming(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "echo" {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		for {
			line, err := buffer.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, line)
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		_, _ = fmt.Fprintf(w, "data: %d\n\n", n)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// TestLongRequests: a stream of events and a tunnel keep their slots for longer than the
// lease, and give them back when they end.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	config := func(store string) string { return harness.Caddyfile("", slotZones("2", store)) }
	upstream := harness.StartBackend(t, streaming)
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		first, last := f.First, f.Last
		client := harness.NewClient(t, "")
		events := newStream(t, first)
		tunnel := newTunnel(t, last)
		stayTaken(t, client, 0, first, last)
		for _, s := range []*harness.Server{first, last} {
			if a := s.Get(client, "/both"); a.Status != http.StatusTooManyRequests {
				t.Errorf("status %d while both slots are taken, want 429", a.Status)
			}
		}
		events.next()
		tunnel.echo("still here")

		tunnel.conn.Close()
		first.AwaitLeft(client, "returned", 1)
		if left := last.Left(client, "renewed"); left != 1 {
			t.Errorf("%d left when the tunnel has ended, want 1", left)
		}
		events.next()
		events.body.Close()
		last.AwaitLeft(client, "returned", 2)
	}, upstream.Variable())
}

// stream is a client of Server-Sent Events.
type stream struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Reader
	seen  int
}

func newStream(t *testing.T, s *harness.Server) *stream {
	t.Helper()
	client := harness.NewClient(t, "")
	response, err := client.Get(s.URL("/both"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("events: status %d", response.StatusCode)
	}
	e := &stream{t: t, body: response.Body, lines: bufio.NewReader(response.Body)}
	e.next()
	return e
}

// next reads the events since the last call, at least one, and checks their order.
func (e *stream) next() {
	e.t.Helper()
	for more := true; more; more = e.lines.Buffered() > 0 {
		line, err := e.lines.ReadString('\n')
		if err == nil {
			_, err = e.lines.ReadString('\n')
		}
		if want := fmt.Sprintf("data: %d\n", e.seen); err != nil || line != want {
			e.t.Fatalf("event %q, error %v, want %q", line, err, want)
		}
		e.seen++
	}
}

// tunnel is a connection that has switched to another protocol.
type tunnel struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func newTunnel(t *testing.T, s *harness.Server) *tunnel {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patient.Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /both HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	u := &tunnel{t: t, conn: conn, lines: bufio.NewReader(conn)}
	response, err := http.ReadResponse(u.lines, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, error %v", response, err)
	}
	u.echo("hello")
	return u
}

func (u *tunnel) echo(text string) {
	u.t.Helper()
	if _, err := io.WriteString(u.conn, text+"\n"); err != nil {
		u.t.Fatal(err)
	}
	if line, err := u.lines.ReadString('\n'); err != nil || strings.TrimSpace(line) != text {
		u.t.Fatalf("the tunnel sent back %q, error %v", line, err)
	}
}
