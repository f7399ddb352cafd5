// Package writers is about the writers that a response goes through, from a handler to the connection.
package writers

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Watcher sees a response begin.
type Watcher interface {
	// Begin is called before the last header is sent, by the goroutine that answers.
	Begin(status int, header http.Header)
}

// Response is a writer of a response that has a watcher.
type Response struct {
	caddyhttp.ResponseWriterWrapper
	Watcher Watcher
	Begun   bool          // the watcher has seen the last header
	Sent    int64         // how much of the body was written
	Pieces  *bufio.Writer // gets what was written of the body, and is flushed with it; nil if nobody reads it
}

// WrapServer makes the response one that is written to Caddy's server, beneath all others. So it sees what error
// routes send, because they write to the server's writer and not to that of the handler whose error
// they handle. WrapServer reports whether the server has a place for a wrapper, which it has unless
// its write_idle_timeout is off.
func (w *Response) WrapServer(r *http.Request) bool {
	_, idle := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if idle == nil {
		return false
	}
	w.ResponseWriter = idle.ResponseWriter
	idle.ResponseWriterWrapper = &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}
	return true
}

// Watchers returns the watchers of a response, from the outermost writer to the connection.
func Watchers(w http.ResponseWriter) iter.Seq[Watcher] {
	return func(yield func(Watcher) bool) {
		for w != nil {
			if watched, ok := w.(*Response); ok && !yield(watched.Watcher) {
				return
			}
			inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				return
			}
			w = inner.Unwrap()
		}
	}
}

// Start shows the watcher the last header, once.
func (w *Response) Start(status int) {
	if !w.Begun {
		w.Begun = true
		w.Watcher.Begin(status, w.Header())
	}
}

// WriteHeader implements [http.ResponseWriter].
func (w *Response) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.Start(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *Response) Write(p []byte) (int, error) {
	w.Start(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.Sent += int64(n)
	if w.Pieces != nil {
		_, _ = w.Pieces.Write(p[:n])
	}
	return n, err
}

// ReadFrom implements [io.ReaderFrom], so that the kernel can copy files whose pieces nobody wants.
func (w *Response) ReadFrom(r io.Reader) (int64, error) {
	w.Start(http.StatusOK)
	if w.Pieces != nil {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	n, err := w.ResponseWriterWrapper.ReadFrom(r)
	w.Sent += n
	return n, err
}

// FlushError implements the method that [http.ResponseController] calls. A flush may send the header.
func (w *Response) FlushError() error {
	w.Start(http.StatusOK)
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.FlushPieces()
	return err
}

// FlushPieces flushes the pieces.
func (w *Response) FlushPieces() {
	if w.Pieces != nil {
		_ = w.Pieces.Flush()
	}
}

// Flush implements [http.Flusher].
func (w *Response) Flush() { _ = w.FlushError() }

// Hijack implements [http.Hijacker]. What is sent on a hijacked connection is not HTTP, unless a
// header was sent before.
func (w *Response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.Start(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Interface guards
var (
	_ http.Flusher  = (*Response)(nil)
	_ http.Hijacker = (*Response)(nil)
	_ io.ReaderFrom = (*Response)(nil)
	_ http.Pusher   = (*Response)(nil)
)

// StatusOf returns the status with which Caddy's server responds to an error without error routes, or to a request without a
// response.
func StatusOf(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if e, ok := errors.AsType[caddyhttp.HandlerError](err); ok && e.StatusCode != 0 {
		return e.StatusCode
	}
	return http.StatusInternalServerError
}
