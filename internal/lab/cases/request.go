package cases

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
)

// exchange is one request on its way, and what has come of it. It implements [walk.ServingVisitor].
type exchange struct {
	trial.Trace
	world    *world
	request  *Request
	url      string // the whole one
	at       int64  // when it came, in microseconds since 1970
	response recorder
	err      error // why the request could not be sent, or served
}

// send sends a request. It returns when the request is over, or waits.
func (w *world) send(r *Request) *exchange {
	x := &exchange{world: w, request: r, at: w.Micros(), url: r.URL}
	x.Find, x.Detailed = w.Handler, w.detailed
	if strings.HasPrefix(r.URL, "/") {
		base, err := w.base, error(nil)
		if base == "" {
			base, err = baseOf(w.Config)
		}
		if x.url, x.err = base+r.URL, err; err != nil {
			return x
		}
	}
	described := r.Request
	described.URL, described.Header = x.url, slices.Clone(r.Header)
	made, err := trial.Make(w.App, &described, &x.response)
	if err != nil {
		x.err = err
		return x
	}
	w.Go(func() { x.serve(made) }, func() { x.response.WriteHeader(http.StatusOK) })
	return x
}

// serve serves the request as its server would.
func (x *exchange) serve(made *trial.Request) {
	err := made.Refused
	if err == nil {
		err = walk.Serve(x, made.Server, &x.response, made.Request)
	}
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	if failed := (caddyhttp.HandlerError{}); errors.As(err, &failed) {
		status = failed.StatusCode
	} else {
		x.err = err
	}
	x.response.WriteHeader(status)
}

// Decide implements [walk.Visitor]. Serve takes its place.
func (x *exchange) Decide(caddyhttp.MiddlewareHandler, *http.Request) (passes bool, err error) {
	return true, nil
}

// Serve implements [walk.ServingVisitor]. It does what the handler does in production.
func (x *exchange) Serve(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h := x.Find(module)
	v := x.Try(h, limiter.Config{Zones: x.world.zones[h], Store: x.world.ref, Clock: &x.world.Timeline}, r)
	through, err := h.Respond.Begin(rw, r, v)
	completion := v.Release()
	if through == nil || err != nil {
		return err
	}
	return h.Respond.Serve(completion, through, r, next)
}

// Answer implements [walk.ServingVisitor]: the case answers instead of an upstream.
func (x *exchange) Answer(module caddyhttp.MiddlewareHandler, rw http.ResponseWriter, r *http.Request) error {
	if d := x.request.Takes; d > 0 {
		x.world.Sleep(d)
	}
	_, _ = io.Copy(io.Discard, r.Body) // as an upstream does
	answer := x.request.Answer
	if written, ok := module.(*caddyhttp.StaticResponse); ok && answer == nil {
		return written.ServeHTTP(rw, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil }))
	}
	if answer == nil {
		return nil
	}
	for name, values := range answer.Header {
		for _, value := range values {
			rw.Header().Add(name, value)
		}
	}
	rw.WriteHeader(answer.Status)
	if len(answer.Body) > 0 {
		_, err := rw.Write(answer.Body)
		return err
	}
	return nil
}

// recorder is the response of a request.
type recorder struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *recorder) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements [http.ResponseWriter].
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status, w.sent = status, w.Header().Clone()
	}
}

// Write implements [http.ResponseWriter].
func (w *recorder) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
