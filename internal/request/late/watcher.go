package late

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// mostUnread is how much of a body waits to be read until it is flushed.
const mostUnread = 4 << 10

// chargeWatcher sees the status and the header of a response as they are sent, and changes charges
// accordingly.
type chargeWatcher struct {
	writers.Response
	*served
	strips []string // headers that the client must not see

	mu      sync.Mutex   // guards the rest, because a request may end while error routes respond to its error
	started bool         // whether the header was sent
	unheard bool         // whether the client had left by then
	length  int64        // of the body, by the header; -1 if it is not given
	sent    atomic.Int64 // how much of the body was sent
	reads   bool         // the body says what the request has cost
	unread  []byte       // what was written since the last flush, and is still to be read
}

// watch makes w look at the response that is written to its writer. Fields that outer handlers strip too
// are left to them, because they read these fields themselves.
func (s *served) watch(w *chargeWatcher) {
	w.Watcher, w.served, w.strips, w.length = w, s, s.completion.strips, -1
	for each := range writers.Watchers(w.ResponseWriter) {
		if outer, ok := each.(*chargeWatcher); ok {
			w.strips = slices.DeleteFunc(slices.Clone(w.strips), func(name string) bool {
				return slices.Contains(outer.strips, name)
			})
		}
	}
}

// deserted reports whether the client has left or has broken off its request.
func (s *served) deserted() bool {
	return s.request.Context().Err() != nil || s.body.broken()
}

// Begin implements [writers.Watcher].
func (w *chargeWatcher) Begin(status int, header http.Header) http.Header {
	if !writers.IsFinal(status) {
		return w.strip(header) // the final response is still to come, and its cost with it
	}
	w.start(status)
	return nil
}

// start is called before the header is sent. If the client has left, it does not receive the
// response. If its request is broken off, the response is an answer to that, and not the one that it
// would have been.
func (w *chargeWatcher) start(status int) {
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
	switch {
	case w.request.Method == http.MethodHead,
		status == http.StatusSwitchingProtocols, status == http.StatusNoContent, status == http.StatusNotModified:
		w.length = 0
	}
	w.completion.Judge(status, header)
	w.completion.ReadCost(header)
	w.reads = !w.unheard && w.completion.openBody(status, header)
	w.strip(header)
}

// Sent implements [writers.Watcher]. A piece is read when the client has it, and a small one is in the server's buffer
// until it is flushed.
func (w *chargeWatcher) Sent(n int64, piece []byte) {
	w.sent.Add(n)
	if !w.reads {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.unread)+len(piece) <= mostUnread {
		w.unread = append(w.unread, piece...)
		return
	}
	w.readRest()
	w.completion.readBody(piece)
}

// Flushed implements [writers.Watcher].
func (w *chargeWatcher) Flushed() {
	if w.reads {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.readRest()
	}
}

// WantsPieces implements [writers.Watcher].
func (w *chargeWatcher) WantsPieces() bool { return w.reads }

// readRest reads what waits for that.
func (w *chargeWatcher) readRest() {
	if len(w.unread) > 0 {
		w.completion.readBody(w.unread)
		w.unread = w.unread[:0]
	}
}

// complete reports whether all of the response was sent, as far as its header says.
func (w *chargeWatcher) complete() bool { return w.length >= 0 && w.sent.Load() >= w.length }

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
	end := whole
	if w.unheard || !w.complete() && (!returned || err != nil || w.deserted()) {
		end = brokenOff
	}
	w.settle(end)
	w.strip(w.Header())
}

// settle ends the response.
func (w *chargeWatcher) settle(end ending) {
	w.readRest()
	w.completion.settle(end)
}

// fail is called when the next handlers return an error. The status of the response shows when its
// header is sent. If that cannot be seen, it is the status of the error, unless there are error
// routes: these may respond with any other status, so charges stay as they are.
func (w *chargeWatcher) fail(err error) {
	if w.completion.chargesLate() && w.request.Context().Done() != nil {
		if later := new(chargeWatcher); later.WrapServer(w.request) {
			w.errors = later
			w.watch(later)
			return
		}
	}
	if w.routes.ErrorRoutes(w.request) {
		w.completion.keep()
	}
	w.start(writers.StatusOf(err))
	w.settle(whole)
}

// waitsForError reports whether the response to the request's error is still to come. Then the use
// of the store ends with the request, which is when the error routes have returned or panicked, or earlier if
// the client leaves. Which of these it is does not show.
func (s *served) waitsForError() bool {
	if s == nil || s.errors == nil {
		return false
	}
	w := s.errors
	context.AfterFunc(s.request.Context(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.settle(w.endOfError())
		w.completion.Abandon()
	})
	return true
}

// endOfError is how the response to an error has ended if nothing more of it comes.
func (w *chargeWatcher) endOfError() ending {
	switch {
	case !w.started || w.unheard:
		return brokenOff
	case w.complete():
		return whole
	}
	return perhapsWhole
}

// strip removes the fields from a header that the client must not see, and returns them.
func (w *chargeWatcher) strip(header http.Header) (out http.Header) {
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
