package caddytest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// newServer starts an HTTP server, with HTTP/2 if http2 is set. It is closed when the test ends.
func newServer(t testing.TB, http2 bool, handle http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.Config.ErrorLog = nil
	if http2 {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
		// On a used connection the client repeats a request by itself if it gets no response.
		server.Client().Transport.(*http.Transport).DisableKeepAlives = true
	}
	t.Cleanup(server.Close)
	return server
}

// NewHandlerServer starts an HTTP server that calls a handler as Caddy does. The path of a
// request chooses what is behind the handler.
func NewHandlerServer(t testing.TB, h Handler, http2 bool, behind map[string]caddyhttp.HandlerFunc) *httptest.Server {
	t.Helper()
	return newServer(t, http2, func(w http.ResponseWriter, r *http.Request) {
		serve(h, w, r, behind[r.URL.Path])
	})
}

// serve calls a handler as Caddy does, and answers its error with the error's status.
func serve(h Handler, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) {
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
	if err := h.ServeHTTP(w, r, next); err != nil {
		w.WriteHeader(StatusOf(err))
	}
}

// Get sends a request to a server and returns the status, or 0 if there is no response.
func Get(server *httptest.Server, path string) int {
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// Exchange is a request over HTTP whose client can leave.
type Exchange struct {
	Inside, Done chan struct{} // closed when the handlers behind have the request, and when they are done
	Leave        context.CancelFunc
	Response     chan *http.Response // gets nil if there is no response
}

// End waits until the handlers are done. Before that the client leaves: "before" it has a response, or "later", when what it waits
// for has happened. If it says nothing, the client stays.
func (e *Exchange) End(leaves string, wait func()) {
	<-e.Inside
	if leaves == "later" {
		e.Response <- <-e.Response
	}
	if leaves != "" {
		wait()
		e.Leave()
	}
	<-e.Done
}

// Send sends a request with headers, names and values in turn, through a handler over HTTP.
func Send(t testing.TB, h Handler, http2 bool, behind caddyhttp.HandlerFunc, header ...string) *Exchange {
	t.Helper()
	e := &Exchange{Inside: make(chan struct{}), Done: make(chan struct{}), Response: make(chan *http.Response, 1)}
	server := newServer(t, http2, func(w http.ResponseWriter, r *http.Request) {
		defer close(e.Done)
		serve(h, w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			close(e.Inside)
			return behind(w, r)
		}))
	})
	var ctx context.Context
	ctx, e.Leave = context.WithCancel(t.Context())
	t.Cleanup(e.Leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	go func() {
		response, _ := server.Client().Do(r) // leaving closes it
		e.Response <- response
	}()
	return e
}
