// Package writers is about the writers that a response goes through, from a handler to the connection.
package writers

import (
	"iter"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Layers returns a response's writer and, one after the other, those that it writes to.
func Layers(w http.ResponseWriter) iter.Seq[http.ResponseWriter] {
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

// WrapServer wraps the writer of Caddy's server, beneath all others. The wrapper sees what error
// routes send, because they write to the server's writer and not to that of the handler whose error
// they handle. WrapServer reports whether the server has a place for a wrapper, which it has unless
// its write_idle_timeout is off.
func WrapServer(r *http.Request, wrap func(http.ResponseWriter) http.ResponseWriter) bool {
	_, idle := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if idle == nil {
		return false
	}
	idle.ResponseWriterWrapper = &caddyhttp.ResponseWriterWrapper{ResponseWriter: wrap(idle.ResponseWriter)}
	return true
}

// Unannounce removes fields from those that are announced as trailers. The fields have the form of http.Header's keys.
func Unannounce(header http.Header, fields []string) {
	const trailer = "Trailer"
	announced := header[trailer]
	if len(announced) == 0 {
		return
	}
	var rest []string
	for name := range strings.SplitSeq(strings.Join(announced, ","), ",") {
		if name = textproto.TrimString(name); name != "" && !slices.Contains(fields, textproto.CanonicalMIMEHeaderKey(name)) {
			rest = append(rest, name)
		}
	}
	if delete(header, trailer); len(rest) > 0 {
		header[trailer] = []string{strings.Join(rest, ", ")}
	}
}
