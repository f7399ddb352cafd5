package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
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

// watch subscribes to decisions of one outcome, and returns the status and what follows the
// head.
func (p *pipes) watch(t *testing.T, o outcome.Outcome) (status string, events *bufio.Reader) {
	t.Helper()
	ours, its := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	p.conns <- its
	if _, err := fmt.Fprintf(ours, "GET /rate_limit/decisions?outcome=%s HTTP/1.1\r\nHost: a\r\n\r\n", outcome.Names[o]); err != nil {
		t.Fatal(err)
	}
	events = bufio.NewReader(ours)
	response, err := http.ReadResponse(events, nil)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status, bufio.NewReader(response.Body)
}

// TestIdleSubscribersAreEvicted: when all places are taken, a subscriber that has been sent nothing
// for a while loses its place to another one, because nothing shows whether its client still reads.
// A subscriber that has been sent something keeps its place. Streams last longer than the endpoint reads.
func TestIdleSubscribersAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{make(chan net.Conn), make(chan struct{})}
		var subscribers atomic.Int64
		server := &http.Server{ReadTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			subscribers.Add(1)
			defer subscribers.Add(-1)
			if refused, ok := errors.AsType[caddy.APIError](serveAdmin(w, r)); ok {
				w.WriteHeader(refused.HTTPStatus)
			}
		})}
		go func() { _ = server.Serve(p) }()
		ended := make(chan int, feed.MaxSubscribers+1)
		begin := func(number int) string {
			o := outcome.Limited
			if number == 0 {
				o = outcome.Exempt
			}
			status, events := p.watch(t, o)
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
				t.Fatalf("subscriber %d: %s", i, status)
			}
			time.Sleep(time.Millisecond) // one is the first
		}
		time.Sleep(30*time.Second - time.Second) // a second less than a subscriber may be idle
		if status := begin(feed.MaxSubscribers); status != "503 Service Unavailable" {
			t.Fatalf("one too many: %s", status)
		}
		feed.PublishWithoutDecision(caddytest.Request(nil, "203.0.113.7:1"), "busy", "", "", outcome.Exempt, nil) // to subscriber 0
		time.Sleep(time.Second)
		if status := begin(feed.MaxSubscribers); status != "200 OK" {
			t.Errorf("when others are idle: %s", status)
		}
		if got := <-ended; got != 1 {
			t.Errorf("subscriber %d has lost its place, want 1, which has been idle the longest", got)
		}
		if n := subscribers.Load(); n != feed.MaxSubscribers {
			t.Errorf("%d subscribers, want %d", n, feed.MaxSubscribers)
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := subscribers.Load(); n != 0 {
			t.Errorf("%d subscribers although the server has shut down", n)
		}
	})
}

// TestBlockedStreamsEnd: a stream ends when a write blocks for too long.
func TestBlockedStreamsEnd(t *testing.T) {
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
		status, events := p.watch(t, outcome.Limited)
		if line, err := events.ReadString('\n'); status != "200 OK" || err != nil || !strings.HasPrefix(line, ":") {
			t.Fatalf("%s %q %v", status, line, err)
		}
		// A pipe has no buffer, so the next write waits for a reader.
		if got := <-left; got > heartbeat+writeTimeout {
			t.Errorf("the stream lasted for %v", got)
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
