package key

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// checkSuitable returns an error for a placeholder of Caddy that cannot distinguish clients,
// because it never has the same value twice, or never has a value. It returns a warning for one that
// is empty in most places where a zone may be.
func checkSuitable(named string) (warning string, err error) {
	if field, ok := strings.CutPrefix(named, placeholder.HeaderPrefix); ok {
		for name, instead := range notInHeader {
			if strings.EqualFold(field, name) {
				return "", fmt.Errorf("{%s} is always empty, because Go's HTTP server removes this field from the header%s",
					named, instead)
			}
		}
	}
	for _, p := range neverRepeated {
		if named == p.name || strings.HasSuffix(p.name, ".") && strings.HasPrefix(named, p.name) && !exceptions[named] {
			return "", fmt.Errorf("{%s} is different for each %s, so that nothing would be limited; did you mean {client_ip}, in JSON {http.vars.client_ip}?",
				named, p.each)
		}
	}
	for _, namespace := range oftenEmpty {
		if strings.HasPrefix(named, namespace.prefix) && !strings.HasPrefix(named, placeholder.JSONPrefix) {
			return namespace.why, nil
		}
	}
	return "", nil
}

// neverRepeated are placeholders, and namespaces that end in a dot, which never have the same value
// twice.
var neverRepeated = []struct{ name, each string }{
	{"http.request.remote", "connection"},
	{"http.request.remote.port", "connection"},
	{"http.request.uuid", "request"},
	{"http.request.duration", "request"},
	{"http.request.duration_ms", "request"},
	{"time.now", "request"},
	{"time.now.", "request"},
}

// exceptions are placeholders in these namespaces whose values do repeat.
var exceptions = map[string]bool{"time.now.year": true}

// notInHeader are fields that Go's HTTP server removes from the header of a request, and what to
// use instead.
var notInHeader = map[string]string{
	"Host":              "; did you mean {host}, in JSON {http.request.host}?",
	"Transfer-Encoding": "",
	"Trailer":           "",
}

// oftenEmpty are namespaces that are empty when most zones decide.
var oftenEmpty = []struct{ prefix, why string }{
	{"http.rate_limit.", "it is empty unless another rate_limit comes before this one"},
	{"http.response.", "it is empty unless a handler before this one sets the field: the response comes later"},
	{"http.error.", "it is empty outside error routes"},
	{"http.reverse_proxy.", "it is empty before reverse_proxy, outside handle_response"},
	{"http.intercept.", "it is empty outside intercept"},
}
