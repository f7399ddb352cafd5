package caddyratelimit

import (
	"io"
	"iter"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// writer keeps what an upstream says of limits out of the answer. A proxy adds the
// upstream's fields to those that stand there already, so the first value is ours, and
// the others go at the last moment.
type writer struct {
	caddyhttp.ResponseWriterWrapper
	fields []string // in the form of http.Header's keys
	tidied bool
}

// WriteHeader may come several times: those below 200 are not the last.
func (w *writer) WriteHeader(status int) {
	w.tidied = false
	w.tidy()
	w.tidied = status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.tidy()
	return w.ResponseWriter.Write(b)
}

// ReadFrom lets the kernel copy files, where it can.
func (w *writer) ReadFrom(r io.Reader) (int64, error) {
	w.tidy()
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError is what [http.ResponseController] calls; a flush may send the header.
func (w *writer) FlushError() error {
	w.tidy()
	return http.NewResponseController(w.ResponseWriter).Flush() //nolint:bodyclose // there is none
}

func (w *writer) tidy() {
	if w.tidied {
		return
	}
	w.tidied = true
	header := w.Header()
	for _, field := range w.fields {
		if values := header[field]; len(values) > 1 {
			header[field] = values[:1:1]
		}
	}
}

// wraps tells whether an answer goes through w.
func (w *writer) wraps(outer http.ResponseWriter) bool {
	for each := range layers(outer) {
		if each == http.ResponseWriter(w) {
			return true
		}
	}
	return false
}

// layers are an answer's writer and those that it goes through.
func layers(w http.ResponseWriter) iter.Seq[http.ResponseWriter] {
	return func(yield func(http.ResponseWriter) bool) {
		for w != nil && yield(w) {
			inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
			if !ok {
				return
			}
			w = inner.Unwrap()
		}
	}
}

// Interface guards
var (
	_ http.ResponseWriter = (*writer)(nil)
	_ io.ReaderFrom       = (*writer)(nil)
	_ http.Pusher         = (*writer)(nil)
)
