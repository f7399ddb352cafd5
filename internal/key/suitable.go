package key

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Placeholders that Caddy knows, and that make no key.

// checkSuitable reports whether a placeholder can tell clients apart. The error is for one
// that never has the same value twice or never has any; the warning is for one that is
// empty in most places where a zone may stand.
func checkSuitable(named string) (warning string, err error) {
	if field, ok := strings.CutPrefix(named, placeholder.HeaderPrefix); ok {
		for name, instead := range notInHeader {
			if strings.EqualFold(field, name) {
				return "", fmt.Errorf("{%s} is always empty, because Go's HTTP server takes this field out of the header%s", named, instead)
			}
		}
	}
	for _, of := range neverRepeated {
		if named == of.name || strings.HasSuffix(of.name, ".") && strings.HasPrefix(named, of.name) && !repeatedAfterAll[named] {
			return "", fmt.Errorf("{%s} is new for each %s, so that nothing would be limited; did you mean {http.vars.client_ip}?", named, of.each)
		}
	}
	for _, of := range oftenEmpty {
		if strings.HasPrefix(named, of.prefix) {
			return of.why, nil
		}
	}
	return "", nil
}

// neverRepeated are placeholders, and namespaces that end in a dot, whose values do not come
// again.
var neverRepeated = []struct{ name, each string }{
	{"http.request.remote", "connection"},
	{"http.request.remote.port", "connection"},
	{"http.request.uuid", "request"},
	{"http.request.duration", "request"},
	{"http.request.duration_ms", "request"},
	{"time.now", "request"},
	{"time.now.", "request"},
}

// repeatedAfterAll are the exceptions.
var repeatedAfterAll = map[string]bool{"time.now.year": true}

// notInHeader are fields that are never among those of a request's header, and what to
// write in their place.
var notInHeader = map[string]string{
	"Host":              "; did you mean {http.request.host}?",
	"Transfer-Encoding": "",
	"Trailer":           "",
}

// oftenEmpty are namespaces that are filled after most zones have decided.
var oftenEmpty = []struct{ prefix, why string }{
	{"http.rate_limit.", "it is empty unless another rate_limit stands before this one"},
	{"http.response.", "it is empty unless a handler before this one sets the field: the response comes later"},
	{"http.error.", "it is empty outside error routes"},
	{"http.reverse_proxy.", "it is empty before reverse_proxy, outside handle_response"},
	{"http.intercept.", "it is empty outside intercept"},
}
