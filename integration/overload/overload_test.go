//go:build deep

// Package overload_test has a Caddy with an adaptive limit in front of an upstream that can do only so much.
package overload_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// upstream holds each request until the test lets it go.
type upstream struct {
	*httptest.Server
	mu      sync.Mutex
	arrived chan string // the key of each request that has come
	answer  map[string]chan int
	sending atomic.Int64 // large responses that are not over
}

// startUpstream starts an upstream. A request is answered with a status that is sent to the channel of its key.
func startUpstream(t testing.TB) *upstream {
	u := &upstream{arrived: make(chan string, 1000), answer: make(map[string]chan int)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Key")
		u.arrived <- key
		select {
		case status := <-u.of(key):
			if status == http.StatusSwitchingProtocols {
				u.echo(w)
				return
			}
			w.WriteHeader(status)
		case <-r.Context().Done():
			return
		}
		switch r.URL.Path {
		case "/large":
			u.large(w)
		case "/stream":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // an event stream
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

func (u *upstream) of(key string) chan int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answer[key] == nil {
		u.answer[key] = make(chan int, 100)
	}
	return u.answer[key]
}

// proxy is a Caddy in front of the upstream.
type proxy struct {
	t       testing.TB
	address string
	up      *upstream
	to      string // what follows reverse_proxy; empty: the upstream
	client  *http.Client
}

const config = `{
	servers {
		protocols h1 h2c
	}
}
http://localhost {
	route {
		%s
		adaptive_concurrency {
			key {http.request.header.Key}
			%s
		}
		%s
		reverse_proxy %s
	}
}`

// start runs a Caddy with options of the limit.
func start(t testing.TB, options string) *proxy {
	p := newProxy(t)
	p.load(options, "", "")
	return p
}

// newProxy returns a proxy before its first config.
func newProxy(t testing.TB) *proxy {
	return &proxy{t: t, address: caddytest.FreeAddress(t), up: startUpstream(t), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
}

// load loads a config with options of the limit, and what is before and behind it.
func (p *proxy) load(options, before, behind string) {
	p.t.Helper()
	caddytest.RunConfig(p.t, p.address, fmt.Sprintf(config, before, options, behind, cmp.Or(p.to, p.up.Listener.Addr().String())))
}

// result is an answer of the proxy.
type result struct {
	status int
	header http.Header
	body   string
	err    error
}

// send sends a request in the background.
func (p *proxy) send(ctx context.Context, key, path string) <-chan result {
	done := make(chan result, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Host = "localhost"
	r.Header.Set("Key", key)
	go func() {
		response, err := p.client.Do(r)
		for errors.Is(err, syscall.ECONNRESET) { // by the listener of a config of before, which was being closed
			response, err = p.client.Do(r)
		}
		if err != nil {
			done <- result{err: err}
			return
		}
		defer response.Body.Close()
		if path == "/stream" {
			done <- result{status: response.StatusCode, header: response.Header}
			<-ctx.Done()
			return
		}
		body, err := io.ReadAll(response.Body)
		done <- result{response.StatusCode, response.Header, string(body), err}
	}()
	return done
}

// arrives waits until a request of a key has reached the upstream.
func (p *proxy) arrives(key string) {
	p.t.Helper()
	select {
	case got := <-p.up.arrived:
		if got != key {
			p.t.Fatalf("a request of %s reached the upstream, want one of %s", got, key)
		}
	case <-time.After(patient.Patience):
		p.t.Fatalf("no request of %s reached the upstream", key)
	}
}

// waiting waits until so many requests wait.
func (p *proxy) waiting(want int) {
	p.t.Helper()
	patient.UntilEqual(p.t, "requests that wait", func() int { return state(p.t).Waiting }, want)
}

// TestRefusal: a request that gets no slot in time is answered with 503 and Retry-After. A zone with charge that
// does not count this status gives it back.
func TestRefusal(t *testing.T) {
	p := newProxy(t)
	p.load("max 1\nmax_wait 10ms", "rate_limit {\nzone count {\nkey {http.request.header.Key}\nrate 10/1h\ncharge {\nstatus 2xx 4xx\n}\n}\n}", "")
	hold := p.send(t.Context(), "hold", "/")
	p.arrives("hold")
	for i := range 3 {
		got := <-p.send(t.Context(), "b", "/")
		after, err := strconv.Atoi(got.header.Get("Retry-After"))
		// So many refusals for each answer, and there was no answer.
		if got.status != http.StatusServiceUnavailable || err != nil || after < 1 || after > i+2 {
			t.Fatalf("%+v", got)
		}
	}
	p.up.of("hold") <- http.StatusOK
	<-hold
	p.up.of("b") <- http.StatusOK
	if got := <-p.send(t.Context(), "b", "/"); !strings.Contains(got.header.Get("RateLimit"), "r=9") {
		t.Errorf("after three refusals and an answer, the zone says %q, want r=9", got.header.Get("RateLimit"))
	}
}

// TestReload: requests that run and wait stay where they are when the config is loaded again, and new bounds hold.
func TestReload(t *testing.T) {
	p := start(t, "max 1\nmax_wait 1m")
	first := p.send(t.Context(), "a", "/")
	p.arrives("a")
	second := p.send(t.Context(), "b", "/")
	p.waiting(1)
	p.load("min 2\nmax 2\nmax_wait 1m", "", "")
	p.arrives("b")
	third := p.send(t.Context(), "c", "/")
	p.waiting(1)
	for _, key := range []string{"a", "b", "c"} {
		p.up.of(key) <- http.StatusOK
	}
	for _, r := range []<-chan result{first, second, third} {
		if got := <-r; got.status != http.StatusOK {
			t.Errorf("%+v", got)
		}
	}
	patient.UntilEqual(t, "requests that run in the end", func() int { return state(t).Running }, 0)
}

// state is what the admin API says of the limit.
func state(t testing.TB) adminapi.Adaptive {
	t.Helper()
	var all []adminapi.Adaptive
	if err := json.Unmarshal([]byte(caddytest.Admin(t, http.MethodGet, "adaptive", "")), &all); err != nil {
		t.Fatal(err)
	}
	return all[0]
}
