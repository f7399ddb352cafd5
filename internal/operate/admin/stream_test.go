package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// pipes is a listener whose connections are pipes in memory, so that it works with a clock of its own.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return new(net.UnixAddr) }

// serve answers from a server, until the function that it returns shuts the server down.
func serve(t *testing.T, server *http.Server) (p *pipes, shutdown func()) {
	t.Helper()
	p = &pipes{make(chan net.Conn), make(chan struct{})}
	go func() { _ = server.Serve(p) }()
	return p, func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// watch subscribes to decisions of some outcomes, and returns the status and what follows the head.
func (p *pipes) watch(t *testing.T, outcomes string) (status string, events *bufio.Reader) {
	t.Helper()
	ours, its := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	p.conns <- its
	if _, err := fmt.Fprintf(ours, "GET /rate_limit/decisions?outcome=%s HTTP/1.1\r\nHost: a\r\n\r\n", outcomes); err != nil {
		t.Fatal(err)
	}
	events = bufio.NewReader(ours)
	response, err := http.ReadResponse(events, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status, bufio.NewReader(response.Body)
}

// TestPlaces: when all places are taken, one more subscriber is refused. Streams last longer than the endpoint reads, and end
// when it shuts down.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var subscribers atomic.Int64
		server := &http.Server{ReadTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			subscribers.Add(1)
			defer subscribers.Add(-1)
			if refused, ok := errors.AsType[caddy.APIError](serveAdmin(w, r)); ok {
				w.WriteHeader(refused.HTTPStatus)
			}
		})}
		p, shutdown := serve(t, server)
		for i := range feed.MaxSubscribers + 1 {
			want := map[bool]string{false: "200 OK", true: "503 Service Unavailable"}[i == feed.MaxSubscribers]
			status, events := p.watch(t, "limited")
			if status != want {
				t.Fatalf("subscriber %d: %s", i, status)
			}
			go func() { _, _ = io.Copy(io.Discard, events) }()
		}
		time.Sleep(time.Minute)
		if n := subscribers.Load(); n != feed.MaxSubscribers {
			t.Errorf("%d subscribers, want %d", n, feed.MaxSubscribers)
		}
		if n := reflect.ValueOf(server).Elem().FieldByName("onShutdown").Len(); n > 2 { // one is that of HTTP/2
			t.Errorf("the server keeps %d functions for the streams, want 1", n)
		}
		shutdown()
		synctest.Wait()
		if n := subscribers.Load(); n != 0 {
			t.Errorf("%d subscribers although the server has shut down", n)
		}
	})
}

// TestRate: a subscriber gets as many decisions in a second as it has asked for, and how many others there were.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shutdown := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = serveAdmin(w, r) })})
		defer shutdown()
		_, events := p.watch(t, "exempt&rate=10")
		var got []adminapi.Decision
		go func() {
			for {
				line, err := events.ReadString('\n')
				if err != nil {
					return
				}
				var d adminapi.Decision
				if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &d) == nil {
					got = append(got, d)
				}
			}
		}()
		time.Sleep(watchPulse / 2)
		for _, step := range []struct {
			publish, want int
			pause         time.Duration
		}{{15, 10, 300 * time.Millisecond}, {5, 10, 300 * time.Millisecond}, {0, 10, 400 * time.Millisecond}, {3, 13, time.Second}} {
			for range step.publish {
				feed.Publish(caddytest.Request(nil, "203.0.113.7:1"), "z", "", "", 0, outcome.Exempt, nil, nil)
			}
			time.Sleep(step.pause)
			if synctest.Wait(); len(got) != step.want {
				t.Errorf("%d decisions, want %d", len(got), step.want)
			}
		}
		if n := got[0].Skipped + got[10].Skipped; n != 10 {
			t.Errorf("%d skipped, want 10", n)
		}
	})
}

// TestBlockedStreamsEnd: a stream ends when a write blocks for too long.
func TestBlockedStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Duration, 1)
		p, shutdown := serve(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			if err := serveAdmin(w, r); err != nil {
				t.Error(err)
			}
			left <- time.Since(begun)
		})})
		defer shutdown()
		status, events := p.watch(t, "limited")
		if line, err := events.ReadString('\n'); status != "200 OK" || err != nil || !strings.HasPrefix(line, ":") {
			t.Fatalf("%s %q %v", status, line, err)
		}
		// A pipe has no buffer, so the next write waits for a reader.
		if got := <-left; got > heartbeat*watchPulse+writeTimeout {
			t.Errorf("the stream lasted for %v", got)
		}
	})
}

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
