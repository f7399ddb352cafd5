package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stream reads decisions from the admin API.
func (s *server) stream(query string) io.ReadCloser {
	s.t.Helper()
	return s.events("decisions" + query)
}

// events reads server-sent events from the admin API.
func (s *server) events(path string) io.ReadCloser {
	s.t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "admin"))
		},
	}}
	response, err := client.Get("http://127.0.0.1/rate_limit/" + path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		s.t.Fatalf("%s: %s", response.Status, text)
	}
	return response.Body
}

type seenDecision struct {
	keyState
	Outcome  string   `json:"outcome"`
	Path     string   `json:"path"`
	Decision keyState `json:"decision"`
	Skipped  uint64   `json:"skipped"`
}

// next reads the next decision; false at the end of the stream.
func next(t *testing.T, lines *bufio.Scanner) (d seenDecision, ok bool) {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				t.Fatal(err)
			}
			return d, true
		}
	}
	return d, false
}

// TestAdminStream: a stream has all decisions, or those of a zone, a key or an outcome, with keys of
// any bytes. It lasts longer than the read timeout of the admin endpoint. A flood is sampled, and
// skipped decisions are counted. A reload ends the stream at once.
func TestAdminStream(t *testing.T) {
	t.Parallel()
	s := startCaddy(t, byQuery(memory))
	client := newClient(t, "")
	all, refused := bufio.NewScanner(s.stream("")), bufio.NewScanner(s.stream("?zone=odd%20/%20zone&key=a&outcome=refused"))
	for _, key := range awkwardKeys {
		s.get(client, withKey(key))
		if d, ok := next(t, all); !ok || !d.is(key) || d.Outcome != "allowed" || d.Decision.Used != 1 || d.Decision.Remaining != 1 || d.Path != "/" {
			t.Fatalf("key %q: %+v", key, d)
		}
	}
	time.Sleep(11 * time.Second) // the endpoint's ReadTimeout is 10
	s.admitted(client, 3, "/?k=a")
	if d, ok := next(t, refused); !ok || !d.is("a") || d.Outcome != "limited" || d.Decision.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	few := bufio.NewScanner(s.stream("?rate=1"))
	var sent atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for flooding := newClient(t, ""); ; sent.Add(1) {
			if _, err := send(flooding, s.url("/?k=flood")); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	shown, skipped := uint64(0), uint64(0)
	for ; skipped < 100; shown++ {
		d, ok := next(t, few)
		if !ok {
			t.Fatal("the stream ended")
		}
		skipped += d.Skipped
	}
	close(stop)
	<-stopped
	if n := sent.Load() + 1; shown+skipped > n || shown > n/2 {
		t.Errorf("at 1 per second %d of %d are sent, and %d counted as skipped", shown, n, skipped)
	}
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		s.mustLoad(strings.Replace(byQuery(memory), "respond ok", "respond new", 1))
	}()
	for ok := true; ok; {
		_, ok = next(t, all)
	}
	<-reloaded
}
