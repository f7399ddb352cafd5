package respond

import (
	"net/http"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// headerWatcher keeps rate limit fields of an upstream out of the response. A proxy adds the
// upstream's values to those that are already there. So the first value is the limiter's, and the
// others are removed just before the header is sent.
type headerWatcher struct {
	writers.Response
	writers.HeaderOnly
	by *responders // nil if no handler sends fields
}

// watchHeader returns a writer of a response that keeps the fields of these handlers.
func watchHeader(w http.ResponseWriter, by *responders) *writers.Response {
	return new(headerWatcher).around(w, by)
}

func (w *headerWatcher) around(response http.ResponseWriter, by *responders) *writers.Response {
	w.by, w.ResponseWriter, w.Watcher = by, response, w
	return &w.Response
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

// Begin implements [writers.Watcher].
func (w *headerWatcher) Begin(int) http.Header {
	if w.by != nil {
		w.tidy()
	}
	return nil
}

func (w *headerWatcher) tidy() {
	header := w.Header()
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
	response, ok := through.(*writers.Response)
	if !ok {
		return
	}
	w, ok := response.Watcher.(*headerWatcher)
	if !ok || w.by == nil {
		return
	}
	if err != nil && !w.Begun && p.ErrorRoutes(r) {
		watchHeader(nil, w.by).WrapServer(r)
	}
	w.tidy()
	for _, field := range w.by.fields {
		delete(w.Header(), http.TrailerPrefix+field)
	}
}

// wrap returns the writer that a response must go through so that it keeps the fields of the record's handlers.
func (t *record) wrap(w http.ResponseWriter) http.ResponseWriter {
	if t.ResponseWriter == nil {
		return t.around(w, t.by)
	}
	for each := range writers.Watchers(w) {
		if each == &t.headerWatcher {
			return w
		}
	}
	return watchHeader(w, t.by) // around another response, because this is an error route
}
