package respond

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// headerWatcher keeps rate limit fields of an upstream out of the response. A proxy adds the
// upstream's values to those that are already there. So the first value is the limiter's, and the
// others are removed just before the header is sent.
type headerWatcher struct {
	writers.Response
	writers.HeaderOnly
	by *Fields // of all handlers; nil if none sends any
}

// watchHeader returns a writer of a response that keeps these fields.
func watchHeader(w http.ResponseWriter, by *Fields) *writers.Response {
	return new(headerWatcher).around(w, by)
}

func (w *headerWatcher) around(response http.ResponseWriter, by *Fields) *writers.Response {
	w.by, w.ResponseWriter, w.Watcher = by, response, w
	return &w.Response
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
	for _, field := range w.by.names {
		if values := header[field]; len(values) > 1 {
			header[field] = values[:1:1]
		}
	}
	writers.Unannounce(header, w.by.names) // HTTP/3 takes trailers out of the header
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
	for _, field := range w.by.names {
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
