package key

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// checkSuitable returns an error for a placeholder of Caddy that cannot distinguish clients,
// because it never has the same value twice, or never has a value.
func checkSuitable(named string) error {
	if field, ok := strings.CutPrefix(named, placeholder.HeaderPrefix); ok {
		for name, instead := range notInHeader {
			if strings.EqualFold(field, name) {
				return fmt.Errorf("{%s} is always empty, because Go's HTTP server removes this field from the header%s",
					named, instead)
			}
		}
	}
	for _, p := range neverRepeated {
		if named == p.name || strings.HasSuffix(p.name, ".") && strings.HasPrefix(named, p.name) && !exceptions[named] {
			return fmt.Errorf("{%s} is different for each %s, so that nothing would be limited; did you mean {client_ip}, in JSON {http.vars.client_ip}?",
				named, p.each)
		}
	}
	return nil
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
