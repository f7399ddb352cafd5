package placeholder

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
)

// Request is a request with what Caddy has put into its context, so that it is looked up once.
type Request struct {
	*http.Request
	Vars     map[string]any
	replacer *caddy.Replacer // nil until it is needed
}

// RequestOf returns a request with the variables that are in its context.
func RequestOf(r *http.Request) Request {
	vars, _ := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any)
	return Request{Request: r, Vars: vars}
}

// Replacer returns the replacer that is in the request's context, at its far end. Most keys need none.
func (r *Request) Replacer() *caddy.Replacer {
	if r.replacer == nil {
		r.replacer, _ = r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	}
	return r.replacer
}

// Reader returns a function that reads the value of a placeholder as text. Variables and the host are read from the request as Caddy's
// replacer does it, because the replacer compares the name with all others first.
func Reader(name string) func(*Request) string {
	if variable, ok := strings.CutPrefix(name, varsPrefix); ok {
		return func(r *Request) string { return text(r.Vars[variable]) }
	}
	if name == "http.request.host" {
		return func(r *Request) string { return clientip.WithoutPort(r.Host) }
	}
	return func(r *Request) string { return Text(r.Replacer(), name) }
}
