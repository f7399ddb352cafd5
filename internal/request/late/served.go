package late

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/request/body"
	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// Routes says whether error routes may respond to a request whose handlers fail.
type Routes interface{ ErrorRoutes(r *http.Request) bool }

// Serve calls the next handlers for a request that may pass, and does what remains to be done when
// it is over, even after a panic. The completion is nil if nothing remains.
func (c *Completion) Serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, routes Routes) (err error) {
	if c == nil {
		return next.ServeHTTP(w, r)
	}
	var watcher *chargeWatcher
	returned := false
	defer func() {
		c.Release()
		switch {
		case watcher != nil && watcher.ofError != nil: // that response or the end of the request comes next
			watcher.ofError.claim = context.AfterFunc(r.Context(), c.session.End)
		case returned: // so its writer has seen the response begin, and a handler may still have it
			c.End()
		default:
			c.session.End()
		}
	}()
	if c.chargesLate() || len(c.strips) > 0 {
		watcher = c.watch(w, r, routes)
		w = &watcher.Response
		defer func() { watcher.over(returned, err) }()
	}
	err = next.ServeHTTP(w, r)
	returned = true
	return err
}

// watch begins to watch the response to a request.
func (c *Completion) watch(w http.ResponseWriter, r *http.Request, routes Routes) *chargeWatcher {
	watcher := &chargeWatcher{request: r, routes: routes, length: -1}
	if c.chargesLate() {
		watcher.body = body.Of(r)
	}
	if c.reads {
		acceptReadable(r)
		server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
		if ok && server != nil && server.Logs != nil {
			c.settled = []settledCost{}
			extra.Add(zap.Reflect("rate_limit_costs", &c.settled)) // as it is when the line of the access log is written
		}
	}
	watcher.ResponseWriter = w
	watcher.follow(c)
	return watcher
}

// acceptReadable keeps the upstream from compressing its response in a way that cannot be read, which a
// client could ask for in order to pay no more than what was booked.
func acceptReadable(r *http.Request) {
	const field = "Accept-Encoding"
	if len(r.Header[field]) == 0 {
		return
	}
	coding := "identity"
	for _, accepted := range encode.AcceptedEncodings(r, nil) {
		if accepted == "gzip" || accepted == "*" {
			coding = "gzip"
		}
	}
	r.Header[field] = []string{coding}
}

// chargeWatcher sees the status and the header of a response as they are sent, and changes charges
// accordingly.
type chargeWatcher struct {
	writers.Response
	completion *Completion
	request    *http.Request
	routes     Routes
	body       *body.Body // nil if there is none, or if the response changes no charge
	strips     []string   // headers that the client must not see

	unheard bool  // the client had left when the response began
	length  int64 // of the body, by the header; -1 if it is not given

	ofError *chargeWatcher // sees the response to the request's error, if that changes charges
	claim   func() bool    // for that one: claims the session, unless the request has ended before
}

// follow looks at the response that is written to its writer, for a completion. Fields that outer handlers strip too are
// left to them, because they read these fields themselves.
func (w *chargeWatcher) follow(c *Completion) {
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
	return w.request.Context().Err() != nil || w.body.Broken()
}

// Begin implements [writers.Watcher]. A response to the request's error decides on the charges with its status and header alone.
func (w *chargeWatcher) Begin(status int, header http.Header) {
	switch {
	case w.claim == nil:
		w.begin(status, header)
	case w.claim():
		w.completion.Judge(status, header)
		w.completion.settle(false)
		w.completion.session.End()
	}
	w.strip(header)
}

// begin is called before the header is sent. If the client has left, it does not receive the response. If its request is
// broken off, the response is an answer to that, and not the one that it would have been.
func (w *chargeWatcher) begin(status int, header http.Header) {
	if w.body.Broken() {
		w.completion.keep()
	}
	if w.deserted() {
		status = StatusClientClosedRequest
	}
	w.unheard = status == StatusClientClosedRequest
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
	if !w.unheard && w.completion.openBody(header) {
		// A piece is read when the client has it. A small one is in the server's buffer until it is flushed.
		w.Pieces = bufio.NewWriter(w.completion)
	}
}

// complete reports whether all of the response was sent, as far as its header says.
func (w *chargeWatcher) complete() bool { return w.length >= 0 && w.Sent >= w.length }

// over is called when the next handlers have returned or panicked. Trailers are still in the
// header.
func (w *chargeWatcher) over(returned bool, err error) {
	w.body.Returned(err)
	switch {
	case !w.Begun && !returned:
		w.completion.keep() // the connection is closed, so the client gets no response
	case !w.Begun && err != nil && !w.deserted():
		w.fail(err)
		return
	default:
		w.Start(http.StatusOK)
	}
	w.completion.readCost(w.Header())
	w.FlushPieces()
	w.completion.settle(w.unheard || !w.complete() && (!returned || err != nil || w.deserted()))
	w.strip(w.Header())
}

// fail is called when the next handlers return an error. If error routes may respond to it, the charges wait for their
// response, and the use of the store ends with that or with the request. If it cannot be seen, charges stay as they are.
func (w *chargeWatcher) fail(err error) {
	if w.routes.ErrorRoutes(w.request) {
		later := new(chargeWatcher)
		if w.completion.chargesLate() && w.request.Context().Done() != nil && later.WrapServer(w.request) {
			w.ofError = later
			later.follow(w.completion)
			return
		}
		w.completion.keep()
	}
	w.Start(writers.StatusOf(err))
	w.completion.settle(false)
}

// strip removes the fields from a header that the client must not see.
func (w *chargeWatcher) strip(header http.Header) {
	for _, name := range w.strips {
		delete(header, name)
		delete(header, http.TrailerPrefix+name)
	}
}
