package harness

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// Backend is an upstream in this process. A test can see which requests it has at the moment, and
// hold them there.
type Backend struct {
	Address string

	mu     sync.Mutex
	came   []string
	inside int
	most   int // the largest number that was inside at once
	gates  map[string]chan struct{}
}

// StartBackend serves until the test ends. A request is inside from the call of the handler until
// its return, which is before the answer is complete.
func StartBackend(t *testing.T, handle func(b *Backend, w http.ResponseWriter, r *http.Request)) *Backend {
	t.Helper()
	b := &Backend{gates: make(map[string]chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.came = append(b.came, r.Header.Get("X-Request-Id"))
		b.inside++
		b.most = max(b.most, b.inside)
		b.mu.Unlock()
		defer func() {
			b.mu.Lock()
			b.inside--
			b.mu.Unlock()
		}()
		handle(b, w, r)
	}))
	b.Address = server.Listener.Addr().String()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// Variable is the backend's address as an environment variable for a config.
func (b *Backend) Variable() string { return "UPSTREAM=" + b.Address }

// Gate returns a channel that is closed when the requests of that name may go on.
func (b *Backend) Gate(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[name] == nil {
		b.gates[name] = make(chan struct{})
	}
	return b.gates[name]
}

// Open lets the requests of that name go on, also those that are still to come.
func (b *Backend) Open(name string) { close(b.Gate(name)) }

// Hold keeps a request until the gate that its header names opens, or its client leaves.
func (b *Backend) Hold(r *http.Request) {
	select {
	case <-b.Gate(r.Header.Get("X-Gate")):
	case <-r.Context().Done():
	}
}

// Now returns how many requests are inside, and how many have been at once.
func (b *Backend) Now() (inside, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inside, b.most
}

// AwaitInside waits until a number of requests are inside.
func (b *Backend) AwaitInside(t *testing.T, want int) {
	t.Helper()
	patient.UntilEqual(t, "requests that are with the upstream", func() int {
		inside, _ := b.Now()
		return inside
	}, want)
}

// Came returns the names of the requests that have come.
func (b *Backend) Came() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.came)
}

// AnswerAsAsked is the server behind the recipes.
func AnswerAsAsked(b *Backend, w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if gate := r.Header.Get("X-Gate"); gate != "" {
			go func() { <-b.Gate(gate); conn.Close() }()
		}
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	if r.Header.Get("X-Gate") != "" {
		b.Hold(r)
	}
	if used := r.Header.Get("X-Use"); used != "" {
		w.Header().Set("X-Tokens-Used", used)
	}
	if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
		w.WriteHeader(status)
	} else if r.URL.Path == "/login" && r.Header.Get("X-Password") != "right" {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_, _ = io.WriteString(w, "ok"+r.Header.Get("X-Would-Refuse"))
}
