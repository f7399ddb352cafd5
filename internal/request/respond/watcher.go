package respond

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// Begin implements [writers.Watcher]. It keeps rate limit fields of an upstream out of the response: a proxy adds the
// upstream's values to those that are already there, so the first value is the limiter's. None is a trailer: HTTP/3 would take it
// out of the header.
func (f *Fields) Begin(_ int, header http.Header) {
	for _, field := range f.names {
		if values := header[field]; len(values) > 1 {
			header[field] = values[:1:1]
		}
	}
	if announced := header["Trailer"]; announced != nil { // which handlers may share
		names := strings.Split(strings.Join(announced, ","), ",")
		header["Trailer"] = []string{strings.Join(slices.DeleteFunc(names, func(name string) bool {
			return f.Sends(http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}), ",")}
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
	response := &writers.Response{Watcher: t.Watcher} // another response, because this is an error route
	response.ResponseWriter = w
	return response
}
