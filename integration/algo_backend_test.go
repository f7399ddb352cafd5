package integration_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// backend is an upstream in this process. A test can see which requests it has at the moment, and
// hold them there.
type backend struct {
	address string

	mu     sync.Mutex
	visits []visit
	inside int
	most   int // the largest number that was inside at once
	gates  map[string]chan struct{}
}

// visit is a request that came.
type visit struct {
	id string
	at time.Time
}

// startBackend serves until the test ends. A request is inside from the call of the handler until
// its return, which is before the answer is complete.
func startBackend(t *testing.T, handle func(b *backend, w http.ResponseWriter, r *http.Request)) *backend {
	t.Helper()
	b := &backend{gates: make(map[string]chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		b.mu.Lock()
		b.visits = append(b.visits, visit{r.Header.Get("X-Request-Id"), at})
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
	b.address = server.Listener.Addr().String()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return b
}

// variable is the backend's address as an environment variable for a config.
func (b *backend) variable() string { return "UPSTREAM=" + b.address }

// gate returns a channel that is closed when the requests of that name may go on.
func (b *backend) gate(name string) chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gates[name] == nil {
		b.gates[name] = make(chan struct{})
	}
	return b.gates[name]
}

// open lets the requests of that name go on, also those that are still to come.
func (b *backend) open(name string) { close(b.gate(name)) }

// hold keeps a request until the gate that its header names opens, or its client leaves.
func (b *backend) hold(r *http.Request) {
	select {
	case <-b.gate(r.Header.Get("X-Gate")):
	case <-r.Context().Done():
	}
}

// holding is a handler that only holds requests.
func holding(b *backend, w http.ResponseWriter, r *http.Request) {
	b.hold(r)
	_, _ = w.Write([]byte("ok"))
}

func (b *backend) now() (inside, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inside, b.most
}

// awaitInside waits until a number of requests are inside.
func (b *backend) awaitInside(t *testing.T, want int) {
	t.Helper()
	patient.UntilEqual(t, "requests that are with the upstream", func() int {
		inside, _ := b.now()
		return inside
	}, want)
}

// came returns the requests in the order of their arrival.
func (b *backend) came() []visit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(slices.Values(b.visits), func(a, b visit) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
}

// visitsOf returns how many requests with an id have come.
func (b *backend) visitsOf(id string) (n int) {
	for _, v := range b.came() {
		if v.id == id {
			n++
		}
	}
	return n
}
