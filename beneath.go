package caddyratelimit

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// beneath puts a writer under all that Caddy's server answers a request through. There it
// sees what error routes send: they write to the server's writer and not to that of the
// handler whose error they answer. It reports whether the server has a place for it, which
// it has unless its write_idle_timeout is off.
func beneath(r *http.Request, wrap func(http.ResponseWriter) http.ResponseWriter) bool {
	_, idle := caddyhttp.IdleTimeoutsFromContext(r.Context())
	if idle == nil {
		return false
	}
	idle.ResponseWriterWrapper = &caddyhttp.ResponseWriterWrapper{ResponseWriter: wrap(idle.ResponseWriter)}
	return true
}
