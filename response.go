package caddyratelimit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// watch handles a request and sees what becomes of its response, however it ends.
func (h *hold) watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	if len(h.late) > 0 {
		h.body = watchBody(r)
	}
	seen, returned := h.witness(w, r), false
	defer func() { seen.over(returned, err) }()
	err = next.ServeHTTP(seen, r)
	returned = true
	return err
}

// statusOf is the status that Caddy's server answers an error with where there are no
// error routes.
func statusOf(err error) int {
	if e, ok := errors.AsType[caddyhttp.HandlerError](err); ok && e.StatusCode != 0 {
		return e.StatusCode
	}
	return http.StatusInternalServerError
}

// witness is a response of which the status and the header are looked at as they leave.
type witness struct {
	caddyhttp.ResponseWriterWrapper
	hold    *hold
	request *http.Request
	strips  []string // header fields that the client must not see

	mu      sync.Mutex // a request may end while its error is being answered
	left    bool       // the header has left
	unheard bool       // but there was nobody to receive it
	length  int64      // of the body, as the header says; -1 if it does not
	sent    int64      // of the body
}

// witness makes one around a response. Fields that handlers around this one strip too are
// left to them: they want to read them themselves.
func (h *hold) witness(w http.ResponseWriter, r *http.Request) *witness {
	seen := &witness{hold: h, request: r, strips: h.strips, length: -1}
	seen.ResponseWriter = w
	for layer := range layers(w) {
		if outer, ok := layer.(*witness); ok {
			seen.strips = slices.DeleteFunc(slices.Clone(seen.strips), func(name string) bool { return slices.Contains(outer.strips, name) })
		}
	}
	return seen
}

// deserted reports whether the client has left, or broken its request off.
func (w *witness) deserted() bool {
	return w.request.Context().Err() != nil || w.hold.body.broken()
}

// leaves is called before the header leaves. Where the client has left, nobody receives it.
// Where its request is broken, the answer is to that, and not what it would have been.
func (w *witness) leaves(status int) {
	if w.left { // only set here, by the one goroutine that answers
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = true
	if w.hold.body.broken() {
		w.hold.stand()
	}
	if w.deserted() {
		status = statusClientClosedRequest
	}
	w.unheard = status == statusClientClosedRequest
	header := w.Header()
	if n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64); err == nil {
		w.length = n
	}
	if status == http.StatusSwitchingProtocols || status == http.StatusNoContent || status == http.StatusNotModified || w.request.Method == http.MethodHead {
		w.length = 0
	}
	w.hold.judge(status, header)
	w.hold.collect(header)
	w.strip(header)
}

// complete reports whether all of the response has left, as far as its header tells.
func (w *witness) complete() bool { return w.length >= 0 && w.sent >= w.length }

// over is called when the handlers behind are done. If they panicked they have not
// returned. Trailers are still in the header.
func (w *witness) over(returned bool, err error) {
	w.hold.body.returned(err)
	switch {
	case !w.left && !returned:
		w.hold.stand() // the connection is cut, so nobody hears what has become of the request
	case !w.left && err != nil && !w.deserted():
		w.fails(err)
		return
	default:
		w.leaves(http.StatusOK)
	}
	w.hold.collect(w.Header())
	if w.unheard || !w.complete() && (!returned || err != nil || w.deserted()) {
		w.hold.breakOff()
	}
	w.strip(w.Header())
}

// fails is called when the handlers behind leave the answer to whoever handles their error.
// What that is shows when the header leaves. Where nobody can see that, it is the status of
// the error, unless there are error routes: these may answer with any other, so charges stand.
func (w *witness) fails(err error) {
	h := w.hold
	if len(h.late) > 0 && w.request.Context().Done() != nil && beneath(w.request, func(inner http.ResponseWriter) http.ResponseWriter {
		h.errors = h.witness(inner, w.request)
		return h.errors
	}) {
		return
	}
	if h.handler.errorRoutes(w.request) {
		h.stand()
	}
	w.leaves(statusOf(err))
}

// release ends the use of the store when the request ends, for which an error is still to
// be answered.
func (w *witness) release() {
	context.AfterFunc(w.request.Context(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.left || w.unheard {
			w.hold.breakOff()
		}
		w.hold.stand()
		w.hold.late = nil
		w.hold.use.End()
	})
}

// strip takes out of a header what may not be told to the client.
func (w *witness) strip(header http.Header) (out http.Header) {
	for _, name := range w.strips {
		for _, field := range [2]string{name, http.TrailerPrefix + name} {
			if values, ok := header[field]; ok {
				if out == nil {
					out = make(http.Header)
				}
				out[field] = values
				delete(header, field)
			}
		}
	}
	return out
}

// WriteHeader implements [http.ResponseWriter].
func (w *witness) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.leaves(status)
		w.ResponseWriterWrapper.WriteHeader(status)
		return
	}
	// The response is still to come, and what it costs with it.
	hidden := w.strip(w.Header())
	w.ResponseWriterWrapper.WriteHeader(status)
	maps.Copy(w.Header(), hidden)
}

// Write implements [http.ResponseWriter].
func (w *witness) Write(b []byte) (int, error) {
	w.leaves(http.StatusOK)
	n, err := w.ResponseWriterWrapper.Write(b)
	w.sent += int64(n)
	return n, err
}

// ReadFrom implements [io.ReaderFrom].
func (w *witness) ReadFrom(r io.Reader) (int64, error) {
	w.leaves(http.StatusOK)
	n, err := w.ResponseWriterWrapper.ReadFrom(r)
	w.sent += n
	return n, err
}

// FlushError is what [http.ResponseController] looks for.
func (w *witness) FlushError() error {
	w.leaves(http.StatusOK)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements [http.Flusher].
func (w *witness) Flush() { _ = w.FlushError() }

// Hijack implements [http.Hijacker]. What is said on a hijacked connection is not HTTP,
// unless a header has left before.
func (w *witness) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.leaves(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Interface guards
var (
	_ http.Flusher  = (*witness)(nil)
	_ http.Hijacker = (*witness)(nil)
	_ io.ReaderFrom = (*witness)(nil)
)
