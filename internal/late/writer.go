package late

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

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// chargeWriter sees the status and the header of a response as they are sent, and changes charges
// accordingly.
type chargeWriter struct {
	caddyhttp.ResponseWriterWrapper
	*served
	request *http.Request
	strips  []string // headers that the client must not see

	mu      sync.Mutex // guards the rest, because a request may end while error routes respond to its error
	started bool       // whether the header was sent
	unheard bool       // whether the client had left by then
	length  int64      // of the body, by the header; -1 if it is not given
	sent    int64      // how much of the body was sent
	reads   bool       // the body says what the request has cost
	unread  []byte     // what was written since the last flush, and is still to be read
}

// watch makes w look at the response that is written to inner. Fields that outer handlers strip too
// are left to them, because they read these fields themselves.
func (s *served) watch(w *chargeWriter, inner http.ResponseWriter, r *http.Request) {
	w.served, w.request, w.strips, w.length = s, r, s.completion.strips, -1
	w.ResponseWriter = inner
	for layer := range writers.Layers(inner) {
		if outer, ok := layer.(*chargeWriter); ok {
			w.strips = slices.DeleteFunc(slices.Clone(w.strips), func(name string) bool { return slices.Contains(outer.strips, name) })
		}
	}
}

// deserted reports whether the client has left or has broken off its request.
func (w *chargeWriter) deserted() bool {
	return w.request.Context().Err() != nil || w.body.broken()
}

// start is called before the header is sent. If the client has left, it does not receive the
// response. If its request is broken off, the response is an answer to that, and not the one that it
// would have been.
func (w *chargeWriter) start(status int) {
	if w.started { // which is set only here, by the one goroutine that answers
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = true
	if w.body.broken() {
		w.completion.keep()
	}
	if w.deserted() {
		status = StatusClientClosedRequest
	}
	w.unheard = status == StatusClientClosedRequest
	header := w.Header()
	if text := header.Get("Content-Length"); text != "" { // an error would be an allocation
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			w.length = n
		}
	}
	if status == http.StatusSwitchingProtocols || status == http.StatusNoContent || status == http.StatusNotModified || w.request.Method == http.MethodHead {
		w.length = 0
	}
	w.completion.Judge(status, header)
	w.completion.ReadCost(header)
	w.reads = !w.unheard && w.completion.openBody(status, header)
	w.strip(header)
}

// complete reports whether all of the response was sent, as far as its header says.
func (w *chargeWriter) complete() bool { return w.length >= 0 && w.sent >= w.length }

// over is called when the next handlers have returned or panicked. Trailers are still in the
// header.
func (w *chargeWriter) over(returned bool, err error) {
	w.body.returned(err)
	switch {
	case !w.started && !returned:
		w.completion.keep() // the connection is closed, so the client gets no response
	case !w.started && err != nil && !w.deserted():
		w.fail(err)
		return
	default:
		w.start(http.StatusOK)
	}
	w.completion.ReadCost(w.Header())
	end := whole
	if w.unheard || !w.complete() && (!returned || err != nil || w.deserted()) {
		end = brokenOff
		w.completion.breakOff()
	}
	w.readRest()
	w.completion.closeBody(end)
	w.strip(w.Header())
}

// fail is called when the next handlers return an error. The status of the response shows when its
// header is sent. If that cannot be seen, it is the status of the error, unless there are error
// routes: these may respond with any other status, so charges stay as they are.
func (w *chargeWriter) fail(err error) {
	if w.completion.chargesLate() && w.request.Context().Done() != nil && writers.WrapServer(w.request, func(inner http.ResponseWriter) http.ResponseWriter {
		w.errors = new(chargeWriter)
		w.watch(w.errors, inner, w.request)
		return w.errors
	}) {
		return
	}
	if w.routes.ErrorRoutes(w.request) {
		w.completion.keep()
	}
	w.start(statusOf(err))
	w.completion.closeBody(whole)
}

// waitsForError reports whether the response to the request's error is still to come. Then the use
// of the store ends with the request, which is when the error routes have returned or panicked, or earlier if
// the client leaves. Which of these it is does not show.
func (s *served) waitsForError() bool {
	if s.errors == nil {
		return false
	}
	w := s.errors
	context.AfterFunc(w.request.Context(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		end := w.endOfError()
		if end == brokenOff {
			w.completion.breakOff()
		}
		w.readRest()
		w.completion.closeBody(end)
		w.completion.Abandon()
	})
	return true
}

// endOfError is how the response to an error has ended if nothing more of it comes.
func (w *chargeWriter) endOfError() ending {
	switch {
	case !w.started || w.unheard:
		return brokenOff
	case w.complete():
		return whole
	}
	return perhapsWhole
}

// statusOf returns the status with which Caddy's server responds to an error without error routes.
func statusOf(err error) int {
	if e, ok := errors.AsType[caddyhttp.HandlerError](err); ok && e.StatusCode != 0 {
		return e.StatusCode
	}
	return http.StatusInternalServerError
}

// strip removes the fields from a header that the client must not see, and returns them.
func (w *chargeWriter) strip(header http.Header) (out http.Header) {
	writers.Unannounce(header, w.strips)
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
func (w *chargeWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.start(status)
		w.ResponseWriterWrapper.WriteHeader(status)
		return
	}
	// The final response is still to come, and its cost with it.
	hidden := w.strip(w.Header())
	w.ResponseWriterWrapper.WriteHeader(status)
	maps.Copy(w.Header(), hidden)
}

// Write implements [http.ResponseWriter].
func (w *chargeWriter) Write(b []byte) (int, error) {
	w.start(http.StatusOK)
	n, err := w.ResponseWriterWrapper.Write(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent += int64(n)
	if w.reads {
		w.readLater(b[:n])
	}
	return n, err
}

// ReadFrom implements [io.ReaderFrom].
func (w *chargeWriter) ReadFrom(r io.Reader) (int64, error) {
	w.start(http.StatusOK)
	if w.reads {
		return copyPieces(w, r)
	}
	n, err := w.ResponseWriterWrapper.ReadFrom(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent += n
	return n, err
}

// FlushError implements the method that [http.ResponseController] calls.
func (w *chargeWriter) FlushError() error {
	w.start(http.StatusOK)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if w.reads {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.readRest()
	}
	return err
}

// Flush implements [http.Flusher].
func (w *chargeWriter) Flush() { _ = w.FlushError() }

// Hijack implements [http.Hijacker]. What is sent on a hijacked connection is not HTTP, unless a
// header was sent before.
func (w *chargeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.start(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Interface guards
var (
	_ http.Flusher  = (*chargeWriter)(nil)
	_ http.Hijacker = (*chargeWriter)(nil)
	_ io.ReaderFrom = (*chargeWriter)(nil)
)
