package late

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// chargeWatcher sees the status and the header of a response as they are sent, and changes charges
// accordingly.
type chargeWatcher struct {
	writers.Response
	completion *Completion
	request    *http.Request
	routes     Routes
	body       *requestBody // nil if there is none, or if the response changes no charge
	strips     []string     // headers that the client must not see

	errors  *chargeWatcher // of the response to the request's error, if that changes charges
	ofError func() bool    // for that: claims the session, unless the request has ended before
	started bool           // whether the header was sent
	unheard bool           // whether the client had left by then
	length  int64          // of the body, by the header; -1 if it is not given
	sent    int64          // how much of the body was sent
	unread  *bufio.Writer  // keeps what was written since the last flush from the readers; nil without any
}

// begin begins to look at the response that is written to its writer. Fields that outer handlers strip too
// are left to them, because they read these fields themselves.
func (w *chargeWatcher) begin(c *Completion) {
	w.Watcher, w.completion, w.strips = w, c, c.strips
	for each := range writers.Watchers(w.ResponseWriter) {
		if outer, ok := each.(*chargeWatcher); ok {
			w.strips = slices.DeleteFunc(slices.Clone(w.strips), func(name string) bool {
				return slices.Contains(outer.strips, name)
			})
		}
	}
}

// deserted reports whether the client has left or has broken off its request.
func (w *chargeWatcher) deserted() bool {
	return w.request.Context().Err() != nil || w.body.broken()
}

// Begin implements [writers.Watcher].
func (w *chargeWatcher) Begin(status int, header http.Header) {
	if w.ofError == nil {
		w.start(status)
		return
	}
	if w.ofError() {
		w.completion.failed = status >= http.StatusBadRequest
		w.completion.Judge(status, header)
		w.completion.ReadCost(header)
		w.completion.settle(false)
		w.completion.endSession()
	}
	w.strip(header)
}

// start is called before the header is sent. If the client has left, it does not receive the
// response. If its request is broken off, the response is an answer to that, and not the one that it
// would have been.
func (w *chargeWatcher) start(status int) {
	if w.started {
		return
	}
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
	switch {
	case w.request.Method == http.MethodHead,
		status == http.StatusSwitchingProtocols, status == http.StatusNoContent, status == http.StatusNotModified:
		w.length = 0
	}
	w.completion.Judge(status, header)
	w.completion.ReadCost(header)
	if !w.unheard && w.completion.openBody(status, header) {
		w.unread = bufio.NewWriter(w.completion)
	}
	w.strip(header)
}

// Sent implements [writers.Watcher]. A piece is read when the client has it, and a small one is in the server's buffer
// until it is flushed.
func (w *chargeWatcher) Sent(n int64, piece []byte) {
	w.sent += n
	if w.unread != nil {
		_, _ = w.unread.Write(piece)
	}
}

// Flushed implements [writers.Watcher].
func (w *chargeWatcher) Flushed() {
	if w.unread != nil {
		_ = w.unread.Flush()
	}
}

// WantsPieces implements [writers.Watcher].
func (w *chargeWatcher) WantsPieces() bool { return w.unread != nil }

// complete reports whether all of the response was sent, as far as its header says.
func (w *chargeWatcher) complete() bool { return w.length >= 0 && w.sent >= w.length }

// over is called when the next handlers have returned or panicked. Trailers are still in the
// header.
func (w *chargeWatcher) over(returned bool, err error) {
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
	w.Flushed()
	w.completion.settle(w.unheard || !w.complete() && (!returned || err != nil || w.deserted()))
	w.strip(w.Header())
}

// fail is called when the next handlers return an error. If error routes may respond to it, the status of the response shows when
// its header is sent; its body is not read. If that cannot be seen, charges stay as they are.
func (w *chargeWatcher) fail(err error) {
	if w.routes.ErrorRoutes(w.request) {
		later := new(chargeWatcher)
		if w.completion.chargesLate() && w.request.Context().Done() != nil && later.WrapServer(w.request) {
			w.errors = later
			later.begin(w.completion)
			return
		}
		w.completion.keep()
	}
	w.start(writers.StatusOf(err))
	w.completion.settle(false)
}

// waitsForError reports whether the response to the request's error is still to come. Then the use of the store ends with its
// header, or with the request.
func (w *chargeWatcher) waitsForError() bool {
	if w == nil || w.errors == nil {
		return false
	}
	w.errors.ofError = context.AfterFunc(w.request.Context(), w.completion.endSession)
	return true
}

// strip removes the fields from a header that the client must not see.
func (w *chargeWatcher) strip(header http.Header) {
	for _, name := range w.strips {
		delete(header, name)
		delete(header, http.TrailerPrefix+name)
	}
}
