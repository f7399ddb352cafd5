package respond

import (
	"io"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// headerWriter keeps rate limit fields of an upstream out of the response. A proxy adds the
// upstream's values to those that are already there. So the first value is the limiter's, and the
// others are removed just before the header is sent.
type headerWriter struct {
	caddyhttp.ResponseWriterWrapper
	by     *responders // nil if no handler sends fields
	tidied bool
}

func newHeaderWriter(w http.ResponseWriter, by *responders) *headerWriter {
	return &headerWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, by: by}
}

// responders are the handlers of a request that send headers, and the names of these headers in
// the form of http.Header's keys. A Responder has one for itself alone, so most requests need no other.
type responders struct {
	all    []*Responder
	fields []string
}

// with returns the responders with another one. The receiver may be nil.
func (by *responders) with(p *Responder) *responders {
	switch {
	case by == nil:
		return &p.alone
	case slices.Contains(by.all, p):
		return by
	}
	return &responders{slices.Concat(by.all, p.alone.all), slices.Concat(by.fields, p.Fields.names)}
}

// WriteHeader implements [http.ResponseWriter]. It may be called several times, because a status
// below 200 is not the last one.
func (w *headerWriter) WriteHeader(status int) {
	w.tidied = false
	w.tidy()
	w.tidied = status >= http.StatusOK || status == http.StatusSwitchingProtocols
	w.ResponseWriter.WriteHeader(status)
}

func (w *headerWriter) Write(b []byte) (int, error) {
	w.tidy()
	return w.ResponseWriter.Write(b)
}

// ReadFrom implements [io.ReaderFrom], so that the kernel can copy files.
func (w *headerWriter) ReadFrom(r io.Reader) (int64, error) {
	w.tidy()
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// FlushError implements the method that [http.ResponseController] calls. A flush may send the
// header.
func (w *headerWriter) FlushError() error {
	w.tidy()
	return http.NewResponseController(w.ResponseWriter).Flush() // there is none
}

func (w *headerWriter) tidy() {
	if w.tidied {
		return
	}
	w.tidied = true
	header := w.Header()
	if w.by == nil {
		return
	}
	for _, field := range w.by.fields {
		if values := header[field]; len(values) > 1 {
			header[field] = values[:1:1]
		}
	}
	writers.Unannounce(header, w.by.fields) // HTTP/3 takes trailers out of the header
}

// tidyRest is called when the next handlers have returned. Their trailers are in the header then, too. If they have
// failed, error routes respond, which may be a proxy to another upstream.
func (p *Responder) tidyRest(through http.ResponseWriter, r *http.Request, err error) {
	var w *headerWriter
	switch through := through.(type) {
	case *record:
		w = &through.headerWriter
	case *headerWriter:
		w = through
	}
	if w == nil || w.by == nil {
		return
	}
	if err != nil && !w.tidied && p.ErrorRoutes(r) {
		writers.WrapServer(r, func(inner http.ResponseWriter) http.ResponseWriter { return newHeaderWriter(inner, w.by) })
	}
	w.tidied = false
	w.tidy()
	for _, field := range w.by.fields {
		delete(w.Header(), http.TrailerPrefix+field)
	}
}

// wrap returns the writer that a response must go through so that it keeps the fields of the record's handlers.
func (t *record) wrap(w http.ResponseWriter) http.ResponseWriter {
	switch {
	case t.ResponseWriter == nil:
		t.ResponseWriter = w
		return t
	case t.wraps(w):
		return w
	}
	return newHeaderWriter(w, t.by) // around another response, because this is an error route
}

// wraps reports whether a response that is written to outer goes through the record's writer.
func (t *record) wraps(outer http.ResponseWriter) bool {
	for each := range writers.Layers(outer) {
		if each == http.ResponseWriter(t) {
			return true
		}
	}
	return false
}

// Interface guards
var (
	_ http.ResponseWriter = (*headerWriter)(nil)
	_ io.ReaderFrom       = (*headerWriter)(nil)
	_ http.Pusher         = (*headerWriter)(nil)
)
