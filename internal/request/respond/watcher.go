package respond

import (
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// Begin implements [writers.Watcher]. It keeps rate limit fields of an upstream out of the response.
func (f *Fields) Begin(_ int, header http.Header) { f.tidy(header) }

// tidy removes what others have added to the fields. A proxy adds the upstream's values to those that are already there, so
// the first value is the limiter's.
func (f *Fields) tidy(header http.Header) {
	for _, field := range f.names {
		if values := header[field]; len(values) > 1 {
			header[field] = values[:1:1]
		}
	}
}

// around returns the writer of a response that keeps the fields.
func (f *Fields) around(w http.ResponseWriter) *writers.Response {
	response := &writers.Response{Watcher: f}
	response.ResponseWriter = w
	return response
}

// tidyRest is called when the next handlers have returned. Their trailers are in the header then, too. If they have
// failed, error routes respond, which may be a proxy to another upstream.
func (p *Responder) tidyRest(through http.ResponseWriter, r *http.Request, err error) {
	w, ok := through.(*writers.Response)
	if !ok {
		return
	}
	by, ok := w.Watcher.(*Fields)
	if !ok {
		return
	}
	if err != nil && !w.Begun && p.ErrorRoutes(r) {
		by.around(nil).WrapServer(r)
	}
	by.tidy(w.Header())
	for _, field := range by.names {
		delete(w.Header(), http.TrailerPrefix+field)
	}
}

// by returns the fields of the record's handlers; nil if none sends any.
func (t *record) by() *Fields {
	by, _ := t.Watcher.(*Fields)
	return by
}

// wrap returns the writer that a response must go through so that it keeps the fields of the record's handlers.
func (t *record) wrap(w http.ResponseWriter) http.ResponseWriter {
	if t.ResponseWriter == nil {
		t.ResponseWriter = w
		return &t.Response
	}
	for each := range writers.Watchers(w) {
		if each == t.Watcher {
			return w
		}
	}
	return t.by().around(w) // around another response, because this is an error route
}
