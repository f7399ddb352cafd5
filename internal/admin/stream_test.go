package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
)

// pipes is a listener whose connections are pipes in memory, so that it works with a clock of
// its own.
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

// watchAll begins to watch all decisions, and returns the status and what follows the head.
func (p *pipes) watchAll(t *testing.T) (status string, events *bufio.Reader) {
	t.Helper()
	ours, its := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	p.conns <- its
	if _, err := io.WriteString(ours, "GET /rate_limit/decisions HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	events = bufio.NewReader(ours)
	response, err := http.ReadResponse(events, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status, bufio.NewReader(response.Body)
}

// TestIdleViewersGiveWay: where all places are taken, a viewer that has been shown nothing for
// a while gives its place to another one, because nobody can see whether it still reads. A
// viewer that is shown something keeps its place.
func TestIdleViewersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refused, ok := errors.AsType[caddy.APIError](serveAdmin(w, r)); ok {
				w.WriteHeader(refused.HTTPStatus)
			}
		})}
		go func() { _ = server.Serve(p) }()
		ended := make(chan int, feed.MaxSubscribers+1)
		begin := func(number int) string {
			status, events := p.watchAll(t)
			if status == "200 OK" {
				go func() {
					_, _ = io.Copy(io.Discard, events)
					ended <- number
				}()
			}
			synctest.Wait()
			return status
		}
		for i := range feed.MaxSubscribers {
			if status := begin(i); status != "200 OK" {
				t.Fatalf("viewer %d: %s", i, status)
			}
			time.Sleep(time.Millisecond) // one is the first
		}
		time.Sleep(feed.IdleTimeout - time.Second)
		if status := begin(feed.MaxSubscribers); status != "503 Service Unavailable" {
			t.Fatalf("one too many: %s", status)
		}
		first := feed.Subscribers()[0]
		first.Decisions <- adminapi.Decision{Zone: "busy"}
		time.Sleep(time.Second)
		if status := begin(feed.MaxSubscribers); status != "200 OK" {
			t.Errorf("when others are idle: %s", status)
		}
		if got := <-ended; got != 1 {
			t.Errorf("viewer %d has lost its place, want 1, which has been idle for longest", got)
		}
		if n := len(feed.Subscribers()); n != feed.MaxSubscribers {
			t.Errorf("%d watch, want %d", n, feed.MaxSubscribers)
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(feed.Subscribers()) != 0 {
			t.Error("somebody watches although the server has ended")
		}
	})
}

// TestDeafViewersLoseTheirPlaces: a connection that takes no write for a while is given up.
func TestDeafViewersLoseTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		left := make(chan time.Duration, 1)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			if err := serveAdmin(w, r); err != nil {
				t.Error(err)
			}
			left <- time.Since(begun)
		})}
		go func() { _ = server.Serve(p) }()
		status, events := p.watchAll(t)
		if line, err := events.ReadString('\n'); status != "200 OK" || err != nil || !strings.HasPrefix(line, ":") {
			t.Fatalf("%s %q %v", status, line, err)
		}
		// A pipe has no buffer, so the next write waits for a reader.
		if got := <-left; got > heartbeat+streamPatience {
			t.Errorf("the viewer had its place for %v", got)
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
